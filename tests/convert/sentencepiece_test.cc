// The .model files of SentencePiece: what is refused. What their tokenizers do: tests/text/encoder_test.cc.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/text/tokenizer_tables.h"
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

std::string Refusal(const Folder& folder) {
  try {
    ReadTokenizer(folder.path(), 1000);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

std::string PieceText(const TokenizerData& data, size_t id) {
  const size_t begin = id == 0 ? 0 : data.piece_ends[id - 1];
  return {data.pieces.begin() + static_cast<std::ptrdiff_t>(begin),
          data.pieces.begin() + static_cast<std::ptrdiff_t>(data.piece_ends[id])};
}

std::string RefusalOfModel(const std::string& bytes) {
  const Folder folder;
  folder.Write("spiece.model", bytes);
  return Refusal(folder);
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

// What stands around the texts of a folder with sentencepiece.bpe.model; "" or the refusal in `*refusal`.
TokenizerData FairseqOf(const std::string& config, const std::string& tokenizer_config, std::string* refusal,
                        const std::string& vocab = "") {
  const Folder folder;
  folder.Write("sentencepiece.bpe.model",
               PieceOf("<unk>", 2) + PieceOf("<s>", 3) + PieceOf("</s>", 3) + PieceOf("a", 1) + PieceOf("b", 1));
  folder.Write("config.json", config);
  folder.Write("tokenizer_config.json", tokenizer_config);
  if (!vocab.empty()) folder.Write("vocab.json", vocab);
  refusal->clear();
  try {
    return ReadTokenizer(folder.path(), 1000);
  } catch (const ConvertError& error) {
    *refusal = error.what();
    return {};
  }
}

TEST(SentencePieceFiles, ClassesOfFairseqSayWhatStandsAroundATextAndWhereLanguagesAre) {
  using Ids = std::vector<uint32_t>;
  struct Case {
    const char *config, *tokenizer_config;
    Ids prefix, suffix;
    int32_t mask;
  };
  const Case cases[] = {
      {R"({"model_type": "xlm-roberta"})", "{}", {0}, {2}, 6},
      {R"({"model_type": "xglm"})", "{}", {2}, {}, -1},
      {"{}", R"({"tokenizer_class": "MBartTokenizer", "additional_special_tokens": ["de_DE", "en_XX"]})", {}, {2, 7}, 8},
      {"{}",
       R"({"tokenizer_class": "MBart50TokenizerFast", "src_lang": "de_DE", "additional_special_tokens": ["de_DE", "en_XX"]})",
       {6},
       {2},
       8},
      {"{}",
       R"({"tokenizer_class": "NllbTokenizer", "legacy_behaviour": true, "additional_special_tokens": ["eng_Latn"]})",
       {},
       {2, 6},
       7},
      {"{}",
       R"({"tokenizer_class": "NllbTokenizer", "added_tokens_decoder": {"0": {"content": "<s>"}, "7": {"content": "<mask>"},
        "6": {"content": "eng_Latn"}}})",
       {6},
       {2},
       7},
  };
  for (const Case& one : cases) {
    std::string refusal;
    const TokenizerData data = FairseqOf(one.config, one.tokenizer_config, &refusal);
    ASSERT_EQ(refusal, "");
    EXPECT_EQ(data.prefix, one.prefix) << one.tokenizer_config;
    EXPECT_EQ(data.suffix, one.suffix) << one.tokenizer_config;
    EXPECT_EQ(data.mask_token, one.mask) << one.tokenizer_config;
    EXPECT_EQ(data.bos_token, 0);
    EXPECT_EQ(data.eos_token, 2);
  }
}

TEST(SentencePieceFiles, WhatIsNoTokenizerOfFairseqIsRefused) {
  const char* const m2m = R"({"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": ["__en__"]})";
  const struct {
    const char *config, *tokenizer_config, *vocab, *message;
  } cases[] = {
      {"{}", "{}", "", "no tokenizer_class, sentencepiece.bpe.model needs one of XLMRobertaTokenizer, "},
      {R"({"model_type": "xlm-roberta"})", R"({"tokenizer_class": "CamembertTokenizer"})", "",
       "tokenizer_class \"CamembertTokenizer\", sentencepiece.bpe.model needs one of "},
      {"{}", R"({"tokenizer_class": "NllbTokenizer"})", "", "which name the languages of NllbTokenizer in the order of their ids"},
      {"{}", R"({"tokenizer_class": "MBartTokenizer", "src_lang": "xx", "additional_special_tokens": ["en_XX"]})", "",
       "\"xx\", which stands beside every text, is no token"},
      {"{}", R"({"tokenizer_class": "NllbTokenizer", "added_tokens_decoder": {"8": {"content": "eng_Latn"}}})", "",
       "added_tokens_decoder: 8: 6 expected behind the pieces"},
      {"{}", m2m, "", "vocab.json"},
      {"{}", m2m, R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4})", "\"b\" is not in vocab.json"},
      {"{}", m2m, R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 4})",
       "\"b\" has id 4 in vocab.json, ids from 0 to 5 expected, each once"},
      {"{}", m2m, R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "c": 6})", "6 pieces, vocab.json has 7"},
  };
  for (const auto& one : cases) {
    std::string refusal;
    FairseqOf(one.config, one.tokenizer_config, &refusal, one.vocab);
    EXPECT_NE(refusal.find(one.message), std::string::npos) << one.message << " expected: " << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  }
  const Folder folder;
  folder.Write("sentencepiece.bpe.model", PieceOf("<s>", 3) + PieceOf("<unk>", 2) + PieceOf("</s>", 3) + PieceOf("a", 1));
  folder.Write("config.json", R"({"model_type": "xlm-roberta"})");
  try {
    ReadTokenizer(folder.path(), 1000);
    ADD_FAILURE();
  } catch (const ConvertError& error) {
    EXPECT_NE(std::string(error.what()).find("piece 0: <unk>, <s>, </s> expected at the beginning"), std::string::npos)
        << error.what();
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

// As fine-tunes are published that have no tokenizer.json. The flags: tokenizer_tables.h.
TEST(SentencePieceFiles, TokensBesideTheModelAreAdded) {
  const Folder folder;
  folder.Write("tokenizer.model", PieceOf("<unk>", 2) + PieceOf("<s>", 3) + PieceOf("</s>", 3) + PieceOf("a", 1));
  folder.Write("special_tokens_map.json", R"({"eos_token": "<|end|>", "additional_special_tokens": ["<|tool|>"]})");
  folder.Write("added_tokens.json", R"({"<|tool|>": 6, "<|end|>": 5, "more": 4})");
  using Ids = std::vector<uint32_t>;
  const TokenizerData old = ReadTokenizer(folder.path(), 7);
  EXPECT_EQ(old.added_ids, (Ids{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(old.added_flags, (std::vector<uint8_t>{kIsSpecial, kIsSpecial, kIsSpecial, 0, kIsSpecial, kIsSpecial}));
  EXPECT_EQ(old.eos_token, 5);
  EXPECT_TRUE(old.normalized.values.empty());
  folder.Write("tokenizer_config.json", R"({"added_tokens_decoder": null})");
  EXPECT_EQ(ReadTokenizer(folder.path(), 7).added_ids, old.added_ids);
  folder.Write("tokenizer_config.json", R"({"added_tokens_decoder": {
      "4": {"content": "<|end|>", "special": true, "lstrip": true}, "1": {"content": "<s>", "special": true, "rstrip": true}}})");
  const TokenizerData data = ReadTokenizer(folder.path(), 7);
  EXPECT_EQ(data.added_ids, (Ids{0, 1, 2, 4}));
  EXPECT_EQ(data.added_flags,
            (std::vector<uint8_t>{kIsSpecial, kIsSpecial | kTakesSpacesAfter, kIsSpecial, kIsSpecial | kTakesSpacesBefore}));
  EXPECT_EQ(data.eos_token, 4);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"x": {"content": "b"}})", "added_tokens_decoder: \"x\" is not an id, a number below 16777216 expected"},
      {R"({"99999999": {"content": "b"}})", "added_tokens_decoder: \"99999999\" is not an id"},
      {R"({"4": {}})", "added_tokens_decoder.4: "},
      {R"({"4": {"content": "a"}})", "added token \"a\": id 4, the vocabulary has it as 3"},
      {R"([])", "added_tokens_decoder: [] is not an object"},
  };
  for (const auto& [decoder, message] : cases) {
    folder.Write("tokenizer_config.json", R"({"added_tokens_decoder": )" + std::string(decoder) + "}");
    EXPECT_NE(Refusal(folder).find(message), std::string::npos) << message << " expected: " << Refusal(folder);
  }
  folder.Write("tokenizer_config.json", "{}");
  folder.Write("added_tokens.json", R"({"b": 4, "c": 4})");
  EXPECT_NE(Refusal(folder).find("\"c\" and \"b\" have the same id 4"), std::string::npos) << Refusal(folder);
  folder.Write("added_tokens.json", R"({"b": -1})");
  EXPECT_NE(Refusal(folder).find("\"b\" has id -1, a number below 16777216 expected"), std::string::npos) << Refusal(folder);
}

// What they do: the fixtures sentencepiece_bpe and sentencepiece_unigram.
TEST(SentencePieceFiles, SymbolsThatTheNormalizerChangesAreRefused) {
  std::ifstream file("tests/data/tokenizers/sentencepiece_unigram/tokenizer.model", std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(RefusalOfModel(good + PieceOf("\xE2\x96\x81<more>", 4)), "");
  const std::string refusal = RefusalOfModel(good + PieceOf("\xE2\x91\xA0", 4));
  EXPECT_NE(refusal.find("is user-defined, and the normalizer makes \"1\" of it, which is not supported"), std::string::npos)
      << refusal;
}

TEST(SentencePieceFiles, TheClassSaysWhatTextsBeginWithWhereTheConfigDoesNot) {
  const std::string pieces = PieceOf("<unk>", 2) + PieceOf("<s>", 3) + PieceOf("</s>", 3) + PieceOf("a", 1);
  using Ids = std::vector<uint32_t>;
  struct Case {
    const char *tokenizer_config, *config;
    Ids prefix, suffix;
  };
  for (const Case& c :
       {Case{R"({"tokenizer_class": "T5Tokenizer"})", "{}", {}, {2}}, Case{"{}", R"({"model_type": "mt5"})", {}, {2}},
        Case{R"({"tokenizer_class": "LlamaTokenizerFast"})", "{}", {1}, {}},
        Case{R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false})", "{}", {}, {}},
        Case{R"({"tokenizer_class": "LlamaTokenizer"})", R"({"model_type": "t5"})", {1}, {}},
        Case{"{}", R"({"model_type": "gemma2", "time_step_limit": [0.0, Infinity]})", {1}, {}},
        Case{"{}", R"({"model_type": "gemma9"})", {}, {}},
        Case{R"({"tokenizer_class": "OtherTokenizer"})", R"({"model_type": "llama"})", {}, {}}}) {
    const Folder folder;
    folder.Write("tokenizer.model", pieces);
    folder.Write("tokenizer_config.json", c.tokenizer_config);
    folder.Write("config.json", c.config);
    const TokenizerData data = ReadTokenizer(folder.path(), 4);
    EXPECT_EQ(data.prefix, c.prefix) << c.tokenizer_config << c.config;
    EXPECT_EQ(data.suffix, c.suffix) << c.tokenizer_config << c.config;
  }
}

// What they do in texts: tests/text/sentencepiece_classes_test.cc.
TEST(SentencePieceFiles, SentinelsOfT5StandBehindThePieces) {
  const Folder folder;
  folder.Write("spiece.model", PieceOf("<unk>", 2) + PieceOf("</s>", 3) + PieceOf("a", 1));
  folder.Write("config.json", R"({"model_type": "t5"})");
  using Ids = std::vector<uint32_t>;
  const TokenizerData all = ReadTokenizer(folder.path(), 1000);
  EXPECT_EQ(all.piece_ends.size(), 103u);
  EXPECT_EQ(PieceText(all, 3), "<extra_id_99>");
  EXPECT_EQ(PieceText(all, 102), "<extra_id_0>");
  EXPECT_EQ(all.added_flags, std::vector<uint8_t>(102, kIsSpecial));
  const std::pair<const char*, Ids> cases[] = {
      {R"({"extra_ids": 2})", {0, 1, 3, 4}},
      {R"({"extra_ids": 0})", {0, 1}},
      {R"({"tokenizer_class": "MT5Tokenizer", "extra_ids": null})", {0, 1}},
      {R"({"extra_ids": 2, "added_tokens_decoder": {"3": {"content": "<extra_id_1>", "special": true}}})", {0, 1, 3, 4}},
      {R"({"tokenizer_class": "MT5Tokenizer"})", {0, 1}},
      {R"({"extra_ids": 2, "additional_special_tokens": ["<extra_id_0>", "<extra_id_1>"]})", {0, 1, 3, 4}},
      {R"({"extra_ids": 2, "added_tokens_decoder": {"7": {"content": "<extra_id_0>", "special": true}}})", {0, 1, 7}},
  };
  for (const auto& [config, ids] : cases) {
    folder.Write("tokenizer_config.json", config);
    EXPECT_EQ(ReadTokenizer(folder.path(), 1000).added_ids, ids) << config;
  }
  folder.Write("tokenizer_config.json", R"({"extra_ids": 2, "added_tokens_decoder": {"4": {"content": "x"}}})");
  EXPECT_NE(Refusal(folder).find("extra_ids: 2: added token \"x\" has id 4, expected none of 3 to 4, which are <extra_id_0>"),
            std::string::npos)
      << Refusal(folder);
  folder.Write("tokenizer_config.json", R"({"extra_ids": 1000000})");
  EXPECT_NE(Refusal(folder).find("extra_ids: "), std::string::npos) << Refusal(folder);
}

// Pieces a, aa, and so on can each be cut anywhere: their merges are many more than they are.
TEST(SentencePieceFiles, MergesAreOneForEachCutOfAPiece) {
  const auto model = [](size_t count) {
    std::string pieces = PieceOf("<unk>", 2);
    for (size_t length = 1; length <= count; ++length) pieces += PieceOf(std::string(length, 'a'), 1);
    return pieces + Field(2, Field(3, uint64_t{2}));
  };
  const auto read = [](const std::string& bytes) {
    const Folder folder;
    folder.Write("spiece.model", bytes);
    return ReadTokenizer(folder.path(), 1000);
  };
  const TokenizerData data = read(model(4));
  std::vector<std::vector<uint32_t>> merges;
  for (const format::Merge& merge : data.merges) merges.push_back({merge.left(), merge.right(), merge.id()});
  EXPECT_EQ(merges, (std::vector<std::vector<uint32_t>>{{3, 1, 4}, {2, 2, 4}, {2, 1, 3}, {1, 3, 4}, {1, 2, 3}, {1, 1, 2}}));
  const std::string refusal = RefusalOfModel(model(2010));
  EXPECT_NE(refusal.find("spiece.model: piece 2001: merge 2000001, at most 2000000 expected"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace tarn::convert
