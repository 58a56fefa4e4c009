// Chat templates of checkpoints in the restricted form, from the files to the C API.
#include "tarn/chat.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/convert/chat_testing.h"
#include "tests/convert/convert_testing.h"
#include "tests/support/models.h"
#include "tools/convert/chat/chat_template.h"
#include "tools/convert/chat/known_templates.h"

namespace tarn::convert {
namespace {

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
  expect(7, folder.path() + "/tokenizer_config.json: chat_template is not supported: 7, a text or a list expected");
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

TEST(ChatTemplate, ATokenForAByteEndsNoAnswer) {
  const TokenizerData tokenizer = ReadTokenizer("tests/data/tokenizers/llama2", 1000);
  const TestFolder folder;
  folder.Write("tokenizer_config.json", Config("{% for m in messages %}{{ m.content ~ '\n### U: ' }}{% endfor %}"));
  EXPECT_EQ(ReadFrom(folder, &tokenizer).chat->end_tokens, (std::vector<uint32_t>{1}));
}

TEST(ChatTemplate, NotesSayWhatTheModelFileDoes) {
  const TestFolder folder;
  folder.Write("chat_template.jinja",
               "{% for m in messages %}{% if 'secret' in m.content %}[!]{% endif %}{{ m.content }}\n{% endfor %}");
  const Found marks = ReadFrom(folder);
  EXPECT_TRUE(marks.chat);
  EXPECT_NE(marks.notes.find("chat_template.jinja: looks for \"secret\" in contents, and writes a turn that has it otherwise"),
            std::string::npos)
      << marks.notes;
  folder.Write("chat_template.jinja", "{% for m in messages %}{% if m.content %}{{ m.content }}\n{% endif %}{% endfor %}");
  EXPECT_NE(ReadFrom(folder).notes.find("chat_template.jinja: with an empty content of message 1, "), std::string::npos)
      << ReadFrom(folder).notes;
  folder.Write("tokenizer_config.json", R"({"eos_token": 5})");
  EXPECT_THROW(ReadFrom(folder), ConvertError);
}

// Without a token that ends an answer a model writes on.
TEST(ChatTemplate, MarksThatAreNoTokensAreANote) {
  const TokenizerData gpt2 = ReadTokenizer("tests/data/tokenizers/gpt2", 1000);
  const TestFolder folder;
  const auto notes_of = [&](const char* name, const TokenizerData* tokenizer, int32_t eos_token) {
    std::vector<std::string> notes;
    ReadChatTemplate({folder.path(), name, tokenizer, 1000, eos_token}, &notes);
    return notes.empty() ? "" : notes.front();
  };
  EXPECT_EQ(notes_of("mistral-v3", &gpt2, 1), "");  // has </s>
  EXPECT_EQ(notes_of("llama3", &gpt2, -1),
            "chat template \"llama3\": no token ends an answer: the text behind it, "
            "\"<|eot_id|><|start_header_id|>user<|end_header_id|>\\n\\n\", begins with no special token of the model; run it with "
            "--stop");
  EXPECT_NE(notes_of("llama3", &gpt2, 1).find("\"llama3\": an answer ends at the end tokens of the model alone"),
            std::string::npos);
  EXPECT_NE(notes_of("llama3", nullptr, -1).find("no token ends an answer"), std::string::npos);
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
