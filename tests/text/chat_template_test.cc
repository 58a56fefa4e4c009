#include "runtime/text/chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tarn {
namespace {

Span<const char> View(const std::string& text) { return {text.data(), text.size()}; }
template <size_t N>
Span<const char> Literal(const char (&text)[N]) {
  return {text, N - 1};
}

// As Llama 2 has it.
ChatTemplate Llama2() {
  ChatTemplate chat = {};
  chat.has_system = true;
  chat.system = {Literal("<s>[INST] <<SYS>>\n"), false, false};
  chat.after_system = {Literal("\n<</SYS>>\n\n"), false, true};
  chat.first = {Literal("<s>[INST] "), true, true};
  chat.next = {Literal(" </s><s>[INST] "), true, true};
  chat.assistant = {Literal(" [/INST] "), true, true};
  chat.answer = Literal(" [/INST]");
  return chat;
}

struct Turn {
  ChatRole role;
  std::string content;
};

struct Formatted {
  Status status;
  std::string text;
  std::vector<std::string> contents;
};

Formatted Format(const ChatTemplate& chat, const std::vector<Turn>& turns, ChatStage* stage) {
  std::vector<ChatMessage> messages;
  for (const Turn& turn : turns) messages.push_back({turn.role, View(turn.content)});
  std::vector<TextRange> contents(turns.size());
  std::string text(1000, '?');
  size_t bytes = 0;
  const Status status = FormatChat(chat, {messages.data(), messages.size()}, stage, {text.data(), text.size()}, &bytes,
                                   {contents.data(), contents.size()});
  Formatted made{status, text.substr(0, bytes), {}};
  for (const TextRange& range : contents) {
    made.contents.push_back(status.ok() ? made.text.substr(range.begin, range.end - range.begin) : "");
  }
  return made;
}

constexpr ChatRole kSystem = ChatRole::kSystem, kUser = ChatRole::kUser, kAssistant = ChatRole::kAssistant;

TEST(ChatTemplate, TurnsHaveTheirTextsAndPlaces) {
  ChatStage stage = ChatStage::kBegin;
  const Formatted made =
      Format(Llama2(), {{kSystem, " be brief "}, {kUser, " why? \n"}, {kAssistant, " so. "}, {kUser, "ah"}}, &stage);
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  EXPECT_EQ(made.text, "<s>[INST] <<SYS>>\n be brief \n<</SYS>>\n\n why? [/INST] so. </s><s>[INST] ah [/INST]");
  EXPECT_EQ(made.contents, (std::vector<std::string>{" be brief ", " why?", "so.", "ah"}));
  EXPECT_EQ(stage, ChatStage::kAnswer);
}

TEST(ChatTemplate, TextsOfSeveralCallsAreThatOfOne) {
  const std::vector<Turn> turns = {{kSystem, "s"}, {kUser, "a"}, {kAssistant, "b"}, {kUser, "c"}, {kAssistant, "d"}, {kUser, "e"}};
  ChatStage whole = ChatStage::kBegin, parts = ChatStage::kBegin;
  const std::string expected = Format(Llama2(), turns, &whole).text;
  std::string text = Format(Llama2(), {turns[0]}, &parts).text;
  text += Format(Llama2(), {turns[1], turns[2]}, &parts).text;
  text += Format(Llama2(), {turns[3], turns[4]}, &parts).text;
  text += Format(Llama2(), {turns[5]}, &parts).text;
  EXPECT_EQ(text, expected);
  EXPECT_EQ(parts, whole);
}

TEST(ChatTemplate, TurnsThatCannotStandThereAreRefused) {
  const struct {
    std::vector<Turn> turns;
    ChatStage stage;
    const char* words;
  } cases[] = {
      {{{kAssistant, "x"}}, ChatStage::kBegin, "messages[0] has the role \"assistant\", expected \"system\" or \"user\" here"},
      {{{kUser, "x"}, {kUser, "y"}}, ChatStage::kBegin, "messages[1] has the role \"user\", expected \"assistant\" here"},
      {{{kSystem, "x"}, {kSystem, "y"}}, ChatStage::kBegin, "messages[1] has the role \"system\", expected \"user\" here"},
      {{{kAssistant, "x"}}, ChatStage::kAnswer, "expected \"user\" here"},
      {{{kSystem, "x"}}, ChatStage::kAnswer, "expected \"user\" here"},
      {{{static_cast<ChatRole>(7), "x"}}, ChatStage::kBegin, "the role \"unknown\""},
  };
  for (const auto& one : cases) {
    ChatStage stage = one.stage;
    const Status status = Format(Llama2(), one.turns, &stage).status;
    EXPECT_EQ(status.code(), TARN_INVALID_ARGUMENT);
    EXPECT_NE(std::string(status.message()).find(one.words), std::string::npos) << status.message();
    EXPECT_EQ(stage, one.stage);
  }
  ChatTemplate chat = Llama2();
  chat.has_system = false;
  ChatStage stage = ChatStage::kBegin;
  EXPECT_NE(std::string(Format(chat, {{kSystem, "x"}}, &stage).status.message()).find("takes none"), std::string::npos);
}

TEST(ChatTemplate, AShortBufferGetsTheSizeAndNothingElse) {
  const std::string content = "hello";
  const ChatMessage message = {kUser, View(content)};
  ChatStage stage = ChatStage::kBegin;
  size_t bytes = 0;
  EXPECT_EQ(FormatChat(Llama2(), {&message, 1}, &stage, {}, &bytes, {}).code(), TARN_BUFFER_TOO_SMALL);
  EXPECT_EQ(bytes, 23u);
  EXPECT_EQ(stage, ChatStage::kBegin);
  std::string text(24, '?');
  EXPECT_EQ(FormatChat(Llama2(), {&message, 1}, &stage, {text.data(), 22}, &bytes, {}).code(), TARN_BUFFER_TOO_SMALL);
  EXPECT_TRUE(FormatChat(Llama2(), {&message, 1}, &stage, {text.data(), 23}, &bytes, {}).ok());
  EXPECT_EQ(text, "<s>[INST] hello [/INST]?");
}

// str.strip() of Python 3.13, asked for every code point.
TEST(ChatTemplate, SpacesAreThoseOfPython) {
  const std::string spaces =
      "\t\n\v\f\r\x1c\x1d\x1e\x1f "
      "\xC2\x85\xC2\xA0\xE1\x9A\x80\xE2\x80\x80\xE2\x80\x81\xE2\x80\x82\xE2\x80\x83\xE2\x80\x84\xE2\x80\x85"
      "\xE2\x80\x86\xE2\x80\x87\xE2\x80\x88\xE2\x80\x89\xE2\x80\x8A\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAF\xE2\x81\x9F\xE3\x80\x80";
  const auto trim = [](const std::string& text) {
    const Span<const char> trimmed = TrimSpaces(View(text), true, true);
    return std::string(trimmed.data(), trimmed.size());
  };
  EXPECT_EQ(trim(spaces), "");
  EXPECT_EQ(trim(spaces + "a b" + spaces), "a b");
  for (const char* other : {"\xE2\x80\x8B", "\xE2\x81\xA0", "\xEF\xBB\xBF", "\x1b", "\x80", "\xC2"}) EXPECT_EQ(trim(other), other);
}

}  // namespace
}  // namespace tarn
