// The .model files of SentencePiece: what is refused. What their tokenizers do: tests/text/encoder_test.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {
namespace {

// A folder of its own, which goes away.
class Folder {
 public:
  Folder() : path_(testing::TempDir() + "sentencepiece_test") { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }

 private:
  std::string path_;
};

// Fields of protocol buffers.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Field(uint64_t number, uint64_t value) { return Varint(number << 3) + Varint(value); }
std::string Field(uint64_t number, const std::string& bytes) { return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes; }
std::string PieceOf(const std::string& text, uint64_t type) { return Field(1, Field(1, text) + Field(3, type)); }

std::string RefusalOfModel(const std::string& bytes) {
  const Folder folder;
  folder.Write("spiece.model", bytes);
  try {
    ReadTokenizer(folder.path(), 1000);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

TEST(SentencePieceFiles, WhatIsNotSupportedIsRefusedByName) {
  const std::string good = PieceOf("<unk>", 2) + PieceOf("a", 1) + PieceOf("b", 1);
  EXPECT_EQ(RefusalOfModel(good), "");
  const std::pair<std::string, const char*> cases[] = {
      {"", "it has no pieces"},
      {PieceOf("a", 1), "0 pieces of type 2 (unknown), 1 expected"},
      {good + PieceOf("?", 2), "2 pieces of type 2 (unknown), 1 expected"},
      {good + PieceOf("c", 5), "piece 3: \"c\" has type 5 (unused), which is not supported"},
      {good + PieceOf("c", 9), "piece 3: \"c\" has type 9, which is not supported"},
      {good + PieceOf("", 1), "piece 3: 0 bytes, 1 to 4096 expected"},
      {good + PieceOf("\xFF", 1), "piece 3: byte 0 of a text of 1 bytes is not UTF-8"},
      {good + Field(1, Field(1, "c") + Varint(2 << 3 | 5) + std::string("\0\0\x80\x7F", 4)), "piece 3: its score is not finite"},
      {good + PieceOf("a", 1) + Field(2, Field(3, uint64_t{2})), "piece 3: \"a\" is there twice"},
      {good + Field(2, Field(3, uint64_t{3})), "trainer_spec.model_type: 3 (word) is not supported, 1 (unigram) and 2 (bpe) are"},
      {good + Field(2, Field(24, uint64_t{1})), "treat_whitespace_as_suffix: true is not supported"},
      {good + Field(2, Field(35, uint64_t{1})), "byte_fallback: \"<0x00>\" is not in the vocabulary"},
      {good + Field(3, Field(5, uint64_t{0})), "escape_whitespaces: false is not supported"},
      {good + Field(3, Field(2, "abc")), "precompiled_charsmap: charsmap: 3 bytes"},
      {good + Field(5, Field(2, "abc")), "denormalizer_spec.precompiled_charsmap: is not supported"},
      {good + Field(2, uint64_t{7}), "field 2 has type 0, 2 expected"},
      {good + Varint(1 << 3 | 3), "a field of type 3, 0, 1, 2 or 5 expected"},
      {good + std::string(11, '\x80'), "a number of more than 10 bytes"},
      {good + Varint(1 << 3 | 2) + Varint(UINT64_MAX), "18446744073709551615 bytes expected, 0 are left"},
  };
  for (const auto& [bytes, message] : cases) {
    const std::string refusal = RefusalOfModel(bytes);
    EXPECT_NE(refusal.find(message), std::string::npos) << message << " expected: " << refusal;
    EXPECT_NE(refusal.find("spiece.model: "), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
}

// A file that ends early, or with a byte of it changed: one line, or a tokenizer.
TEST(SentencePieceFiles, DamagedFilesEndInOneLine) {
  for (const char* name : {"sentencepiece_unigram", "sentencepiece_bpe"}) {
    std::ifstream file(std::string("tests/data/tokenizers/") + name + "/tokenizer.model", std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_EQ(RefusalOfModel(good), "");
    for (size_t size = 1; size < good.size(); size += 501) {
      EXPECT_EQ(RefusalOfModel(good.substr(0, size)).find('\n'), std::string::npos) << size;
    }
    for (size_t at = 0; at < good.size(); at += 301) {
      std::string bad = good;
      bad[at] = static_cast<char>(~bad[at]);
      EXPECT_EQ(RefusalOfModel(bad).find('\n'), std::string::npos) << at;
    }
  }
}

TEST(SentencePieceFiles, TokenizerConfigSaysWhatTextsBeginWith) {
  const Folder folder;
  folder.Write("tokenizer.model", PieceOf("<unk>", 2) + PieceOf("<s>", 3) + PieceOf("</s>", 3) + PieceOf("a", 1));
  const TokenizerData plain = ReadTokenizer(folder.path(), 4);
  EXPECT_TRUE(plain.prefix.empty() && plain.suffix.empty());
  EXPECT_EQ(plain.bos_token, 1);
  EXPECT_EQ(plain.eos_token, 2);
  folder.Write("tokenizer_config.json", R"({"add_bos_token": true, "add_eos_token": true, "bos_token": "</s>"})");
  const TokenizerData both = ReadTokenizer(folder.path(), 4);
  EXPECT_EQ(both.prefix, std::vector<uint32_t>{2});
  EXPECT_EQ(both.suffix, std::vector<uint32_t>{2});
  EXPECT_THROW(ReadTokenizer(folder.path(), 3), ConvertError);
}

}  // namespace
}  // namespace tarn::convert
