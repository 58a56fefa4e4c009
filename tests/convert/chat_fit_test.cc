// The restricted form of chat templates against the texts of jinja2.
#include "tools/convert/chat/chat_fit.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/convert/chat_testing.h"
#include "tools/convert/chat/jinja_text.h"
#include "tools/convert/chat/known_templates.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

ChatFit Fit(const std::string& name) { return FitChat(JinjaTemplate(ChatSource(name)), kChatTexts); }

std::string Refusal(const std::string& source) {
  try {
    FitChat(JinjaTemplate(source), kChatTexts);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

// A conversation that the form is for: a system text, if there may be one, then user and assistant in turn, up to the user.
bool IsInForm(const ChatFit& fit, const ChatAnswer& answer) {
  if (!answer.generation || answer.messages.empty()) return false;
  const bool with_system = answer.messages[0].role == "system";
  if (with_system && !fit.no_system.empty()) return false;
  for (size_t i = with_system ? 1 : 0; i < answer.messages.size(); ++i) {
    const JinjaMessage& one = answer.messages[i];
    if (one.role != ((i - (with_system ? 1 : 0)) % 2 == 0 ? "user" : "assistant")) return false;
    if (StripSpaces(one.content, true, true).empty()) return false;
    for (const std::string& text : fit.special_contents) {
      if (one.content.find(text) != std::string::npos) return false;
    }
  }
  return answer.messages.back().role == "user";
}

TEST(ChatFit, FormsGiveTheTextsOfJinja2) {
  std::map<std::string, size_t> checked;
  std::map<std::string, ChatFit> fits;
  for (const ChatAnswer& answer : ChatAnswers()) {
    if (answer.name == "lines_removed" || answer.name == "numbered") continue;
    if (fits.count(answer.name) == 0) fits[answer.name] = Fit(answer.name);
    const ChatFit& fit = fits[answer.name];
    if (!IsInForm(fit, answer)) continue;
    ASSERT_TRUE(answer.text) << answer.name;
    EXPECT_EQ(FormatChat(fit.chat, answer.messages), *answer.text) << answer.name;
    ++checked[answer.name];
  }
  EXPECT_EQ(checked.size(), 16u);
}

TEST(ChatFit, WhatTheFormCannotExpressIsSaid) {
  EXPECT_NE(
      Refusal(ChatSource("lines_removed")).find("a conversation of user, assistant, user is rendered otherwise: \"user: several"),
      std::string::npos)
      << Refusal(ChatSource("lines_removed"));
  EXPECT_NE(Refusal(ChatSource("numbered")).find("is rendered otherwise"), std::string::npos);
  EXPECT_NE(Refusal("{{ messages[0].content | upper }}").find("the content of message 1, of the user, is not in the text"),
            std::string::npos);
  EXPECT_NE(Refusal("{% for m in messages %}{{ m.content.strip('\\n') }}{% endfor %}").find("spaces around a content"),
            std::string::npos);
  EXPECT_NE(Refusal("{% for m in messages %}{{ m.content ~ m.content }}{% endfor %}").find("or is there twice"), std::string::npos);
  // As Granite 3.1: today's date where there is no system text.
  EXPECT_NE(Refusal("{% if messages[0].role != 'system' %}{{ strftime_now('%B %d, %Y') }}{% endif %}" + ChatSource("granite"))
                .find("\"strftime_now\" is undefined"),
            std::string::npos);
  EXPECT_NE(Fit("gemma").no_system.find("System role not supported"), std::string::npos);
  EXPECT_NE(Fit("mistral_v3").no_system.find("is not in its place"), std::string::npos);
  EXPECT_EQ(Fit("deepseek").special_contents, std::vector<std::string>{"</think>"});
  EXPECT_TRUE(Fit("chatml").special_contents.empty());
}

// Up to four turns it is one of the form.
TEST(ChatFit, ATemplateThatChangesLaterIsRefused) {
  const std::string turns = "{% for m in messages %}{{ m.role ~ ': ' ~ m.content ~ '|' }}";
  EXPECT_EQ(Refusal(turns + "{% endfor %}"), "");
  for (const std::string text :
       {"{% if loop.index == 9 %}!{% endif %}{% endfor %}", "{% endfor %}{% if messages|length > 10 %}!{% endif %}"}) {
    EXPECT_NE(Refusal(turns + text).find("is rendered otherwise: \"!"), std::string::npos) << Refusal(turns + text);
  }
}

TEST(ChatFit, AContentWithoutTextIsTried) {
  const auto blank_of = [](const std::string& source) { return FitChat(JinjaTemplate(source), kChatTexts).blank_content; };
  EXPECT_EQ(blank_of(ChatSource("chatml")), "");
  EXPECT_EQ(blank_of(ChatSource("llama3")), "");  // trims each content
  const std::string dropped =
      "{% for m in messages %}{% if m.content %}{{ m.role ~ ': ' ~ m.content ~ '|' }}{% endif %}{% endfor %}";
  EXPECT_EQ(blank_of(dropped),
            "with an empty content of message 1, a conversation of system, user, assistant, user is rendered otherwise: "
            "\"user: x|assistant: x|user: x|\" at byte 0, and not \"system: |user: x|assistant: x|user: x|\"");
  const std::string refused =
      "{% for m in messages %}{% if not m.content %}{{ raise_exception('no text') }}{% endif %}"
      "{{ m.role ~ ': ' ~ m.content ~ '|' }}{% endfor %}";
  EXPECT_NE(blank_of(refused).find("no text"), std::string::npos) << blank_of(refused);
  EXPECT_NE(blank_of(ChatSource("llama2")).find("with an empty content of message 2"), std::string::npos)
      << blank_of(ChatSource("llama2"));
}

// Templates by name are those that the documented ones compile to.
TEST(KnownTemplates, AreWhatTheTemplatesOfTheirModelsCompileTo) {
  const std::map<std::string, std::string> jinja_of = {
      {"chatml", "chatml"}, {"qwen2", "qwen2"},           {"llama2", "llama2"},         {"zephyr", "zephyr"},
      {"rwkv", "rwkv"},     {"mistral-v1", "mistral_v1"}, {"mistral-v3", "mistral_v3"}, {"mistral-v7-tekken", "mistral_v7"},
      {"phi3", "phi3"}};
  for (const auto& [name, jinja] : jinja_of) {
    const ChatData known = KnownTemplate(name), fit = Fit(jinja).chat;
    const auto is_equal = [](const ChatTurnData& a, const ChatTurnData& b) {
      return a.before == b.before && a.trim_begin == b.trim_begin && a.trim_end == b.trim_end;
    };
    EXPECT_EQ(known.has_system, fit.has_system) << name;
    EXPECT_TRUE(is_equal(known.system, fit.system)) << name;
    EXPECT_TRUE(is_equal(known.after_system, fit.after_system)) << name;
    EXPECT_TRUE(is_equal(known.first, fit.first)) << name;
    EXPECT_TRUE(is_equal(known.next, fit.next)) << name;
    EXPECT_TRUE(is_equal(known.assistant, fit.assistant)) << name;
    EXPECT_EQ(known.answer, fit.answer) << name;
  }
  for (const std::string& name : KnownTemplateNames()) EXPECT_EQ(KnownTemplate(name).name, name);
}

}  // namespace
}  // namespace tarn::convert
