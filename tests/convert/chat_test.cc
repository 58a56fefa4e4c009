// Chat templates of checkpoints in the restricted form, from the files to the C API.
#include "tarn/chat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "runtime/model/chat_template.h"
#include "tests/convert/chat_testing.h"
#include "tests/convert/convert_testing.h"
#include "tests/support/models.h"
#include "tools/convert/chat/chat_fit.h"
#include "tools/convert/chat/chat_template.h"
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
  EXPECT_EQ(checked.size(), 15u);
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
  EXPECT_NE(Fit("gemma").no_system.find("System role not supported"), std::string::npos);
  EXPECT_NE(Fit("mistral_v3").no_system.find("is not in its place"), std::string::npos);
  EXPECT_EQ(Fit("deepseek").special_contents, std::vector<std::string>{"</think>"});
  EXPECT_TRUE(Fit("chatml").special_contents.empty());
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

struct Found {
  std::optional<ChatData> chat;
  std::string notes;
};

Found ReadFrom(const TestFolder& folder, const TokenizerData* tokenizer = nullptr) {
  std::vector<std::string> notes;
  Found found{ReadChatTemplate({folder.path(), "", tokenizer, 1000, 1}, &notes), ""};
  for (const std::string& note : notes) found.notes += note + "\n";
  return found;
}

std::string Config(const Json& chat_template) {
  return Json{{"chat_template", chat_template}, {"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}}.dump();
}

TEST(ChatTemplate, IsReadFromTheFilesOfACheckpoint) {
  const TestFolder folder;
  EXPECT_FALSE(ReadFrom(folder).chat);
  EXPECT_EQ(ReadFrom(folder).notes, "");
  folder.Write("tokenizer_config.json", Config(ChatSource("llama2")));
  EXPECT_EQ(ReadFrom(folder).chat->next.before, " </s><s>[INST] ");
  EXPECT_EQ(ReadFrom(folder).chat->name, "model");
  const Json tool = {{"name", "tool_use"}, {"template", "x"}};
  folder.Write("tokenizer_config.json", Config(Json::array({tool, {{"name", "default"}, {"template", ChatSource("llama3")}}})));
  EXPECT_EQ(ReadFrom(folder).chat->first.before, "<s><|start_header_id|>user<|end_header_id|>\n\n");
  folder.Write("chat_template.jinja", ChatSource("chatml"));
  EXPECT_EQ(ReadFrom(folder).chat->first.before, "<|im_start|>user\n");
  folder.Write("chat_template.jinja", ChatSource("llama31"));
  EXPECT_NE(ReadFrom(folder).notes.find("chat_template.jinja: asks for the date"), std::string::npos);
}

TEST(ChatTemplate, OneThatIsRefusedIsANote) {
  const TestFolder folder;
  const auto expect = [&](const Json& chat_template, const std::string& words) {
    folder.Write("tokenizer_config.json", Config(chat_template));
    const Found found = ReadFrom(folder);
    EXPECT_FALSE(found.chat);
    EXPECT_NE(found.notes.find(words), std::string::npos) << found.notes;
  };
  expect("{{ x", "tokenizer_config.json: chat_template is not supported: line 1: the tag has no end; --chat-template NAME gives");
  expect(Json::array({{{"name", "tool_use"}, {"template", "x"}}}), "the name \"default\" expected, found tool_use");
  expect(Json::array({7}), "an object with \"name\" and \"template\" expected");
  expect(7, "7, a text or a list expected");
  folder.Write("tokenizer_config.json", Config(ChatSource("gemma")));
  EXPECT_TRUE(ReadFrom(folder).chat);
  EXPECT_NE(ReadFrom(folder).notes.find("without system texts"), std::string::npos);
}

TEST(ChatTemplate, EndTokensAreThoseThatFollowAnAnswer) {
  const TokenizerData tokenizer = ReadTokenizer("tests/data/tokenizers/gpt2", 1000);
  const TestFolder folder;
  folder.Write("tokenizer_config.json", Config("{% for m in messages %}{{ m.content ~ '\\n<|sep|>' }}{% endfor %}"));
  EXPECT_EQ(ReadFrom(folder, &tokenizer).chat->end_tokens, (std::vector<uint32_t>{600, 1}));
  folder.Write("generation_config.json", R"({"eos_token_id": [1, 7, 4000]})");
  EXPECT_EQ(ReadFrom(folder, &tokenizer).chat->end_tokens, (std::vector<uint32_t>{600, 1, 7}));
  EXPECT_TRUE(ReadFrom(folder).chat->end_tokens.empty());  // bytes
}

// ---- In a model file ----

std::vector<uint8_t> ModelWith(const ChatData& chat) {
  const ModelConfig config = ParseConfig(test::ConfigText(test::kRfa), "test");
  GraphBuilder builder(Precision::kF32);
  BuildModel(config, &builder);
  builder.graph().chat_writer = [&](flatbuffers::FlatBufferBuilder* made) { return WriteChatTemplate(chat, made); };
  MemorySink sink;
  WriteModel(builder.graph(), RandomWeights(1), &sink);
  return sink.bytes();
}

class OpenModel {
 public:
  explicit OpenModel(const ChatData& chat) : bytes_(ModelWith(chat)) {
    tarn_source source = TARN_SOURCE_INIT;
    source.buffer = bytes_.data();
    source.length_bytes = bytes_.size();
    status_ = tarn_model_open(&source, nullptr, &model_, &error_);
  }
  ~OpenModel() { tarn_model_close(model_); }
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;

  const tarn_model* get() const { return model_; }
  tarn_status status() const { return status_; }
  std::string message() const { return error_.message; }

 private:
  std::vector<uint8_t> bytes_;
  tarn_model* model_ = nullptr;
  tarn_error error_ = {TARN_OK, ""};
  tarn_status status_;
};

TEST(ChatTemplate, ADamagedOneIsRefusedWithTheModel) {
  const auto expect = [](const ChatData& chat, const std::string& words) {
    const OpenModel model(chat);
    EXPECT_EQ(model.status(), TARN_BAD_FORMAT);
    EXPECT_NE(model.message().find(words), std::string::npos) << model.message();
  };
  ChatData chat = KnownTemplate("chatml");
  EXPECT_EQ(OpenModel(chat).status(), TARN_OK);
  chat.end_tokens = {3, 256};
  expect(chat, "chat template: end token 256, below vocab_size 256 expected");
  chat = KnownTemplate("chatml");
  chat.next.before = std::string(20000, 'x');
  expect(chat, "chat template: 'next' has 20000 bytes, at most 16384 expected");
}

TEST(ChatTemplate, TheCApiFormatsTurns) {
  ChatData data = KnownTemplate("chatml");
  data.end_tokens = {3};
  const OpenModel model(data);
  ASSERT_EQ(model.status(), TARN_OK) << model.message();
  tarn_error error;
  tarn_chat_info info = TARN_CHAT_INFO_INIT;
  ASSERT_EQ(tarn_chat_get_info(model.get(), &info, &error), TARN_OK);
  EXPECT_STREQ(info.name, "chatml");
  EXPECT_EQ(info.takes_system, 1);
  ASSERT_EQ(info.end_token_count, 1u);
  EXPECT_EQ(info.end_tokens[0], 3);

  const tarn_chat_message messages[] = {{TARN_CHAT_SYSTEM, "s", 1}, {TARN_CHAT_USER, "hello", 5}};
  tarn_chat chat = {0};
  size_t bytes = 0;
  EXPECT_EQ(tarn_chat_format(model.get(), &chat, messages, 2, nullptr, 0, &bytes, nullptr, &error), TARN_BUFFER_TOO_SMALL);
  std::string text(bytes, '\0');
  tarn_text_range contents[2];
  ASSERT_EQ(tarn_chat_format(model.get(), &chat, messages, 2, text.data(), bytes, &bytes, contents, &error), TARN_OK);
  EXPECT_EQ(text, "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(text.substr(contents[1].begin, contents[1].end - contents[1].begin), "hello");
  EXPECT_EQ(chat.stage, 2u);

  const auto status = [&](const tarn_chat_message* given, size_t count, tarn_chat at) {
    return tarn_chat_format(model.get(), &at, given, count, text.data(), text.size(), &bytes, nullptr, &error);
  };
  EXPECT_EQ(status(messages, 2, {0}), TARN_OK);
  EXPECT_EQ(status(messages, 1, {2}), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(status(messages, 1, {3}), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(status(nullptr, 1, {0}), TARN_INVALID_ARGUMENT);
  const tarn_chat_message without_text = {TARN_CHAT_USER, nullptr, 1};
  EXPECT_EQ(status(&without_text, 1, {0}), TARN_INVALID_ARGUMENT);
  EXPECT_EQ(tarn_chat_get_info(nullptr, &info, &error), TARN_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tarn::convert
