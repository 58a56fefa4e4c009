#include "tools/convert/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/convert/convert_testing.h"
#include "tests/support/tokenizers.h"

namespace tarn::convert {
namespace {

using nlohmann::json;

json Fixture(const std::string& name) { return json::parse(std::ifstream("tests/data/tokenizers/" + name + "/tokenizer.json")); }

// A folder of its own, which goes away.
class Folder {
 public:
  Folder() : path_(testing::TempDir() + "tokenizer_test") { std::filesystem::create_directories(path_); }
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

// What ReadTokenizer says of a tokenizer.json; "" if it takes it.
std::string Refusal(const json& file, uint32_t vocab_size = 1000) {
  const Folder folder;
  folder.Write("tokenizer.json", file.dump());
  try {
    ReadTokenizer(folder.path(), vocab_size);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

TEST(TokenizerFiles, WhatIsNotSupportedIsRefusedByName) {
  struct Case {
    const char* place;
    const char* value;
    const char* message;
  };
  const Case cases[] = {
      {"/model/type", R"("Unigrams")", "type: \"Unigrams\" is not one of BPE, Unigram, WordPiece, WordLevel"},
      {"/model/dropout", "0.1", "dropout"},
      {"/model/byte_fallback", "true", "byte_fallback"},
      {"/model/continuing_subword_prefix", R"("##")", "continuing_subword_prefix"},
      {"/model/unk_token", R"("<nobody>")", "\"<nobody>\" is not in the vocabulary"},
      {"/model/merges/0", R"("a b c")", "merges[0]: \"a b c\", two tokens"},
      {"/model/merges/0", R"(["zzzz", "a"])", "model.merges[0]: \"zzzz\" is not in the vocabulary"},
      {"/model/vocab/a", "-1", "\"a\" has id -1"},
      {"/model/vocab/a", "1", "have the same id 1"},
      {"/model/more", "1", "more"},
      {"/pre_tokenizer", R"({"type": "Scripts"})", "pre_tokenizer: type: \"Scripts\" is not one of Split, ByteLevel"},
      {"/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a"},
        "behavior": "Isolated"}, {"type": "ByteLevel", "add_prefix_space": false}]})",
       "pre_tokenizer.pretokenizers[0].pattern"},
      {"/pre_tokenizer",
       R"({"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "_"}, {"type": "ByteLevel"}]})",
       "pretokenizers[1].add_prefix_space: a second step that puts a space before texts"},
      {"/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "add_prefix_space": false}, {"type": "ByteLevel"}]})",
       "pretokenizers[1]: add_prefix_space: true is not supported behind Metaspace, false is"},
      {"/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "ByteLevel"}]})",
       "pretokenizers[1]: ByteLevel twice"},
      {"/pre_tokenizer",
       R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Metaspace", "replacement": "_"}]})",
       "pretokenizers[1]: Metaspace is not supported behind ByteLevel"},
      {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})", "replacement: \"ab\" found, one character"},
      {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false, "prepend_scheme": "first"})",
       "add_prefix_space: false contradicts prepend_scheme"},
      {"/pre_tokenizer", R"({"type": "FixedLength", "length": 0})", "length"},
      {"/normalizer", R"({"type": "Precompiled"})", "normalizer: the field \"precompiled_charsmap\""},
      {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AAA"})", "charsmap: 3 characters with 0 '='"},
      {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AA_A"})", "charsmap: character 2 is not one of base64"},
      {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AAQAAAAA"})",
       "charsmap: a double array of 1024 bytes, a multiple of 4 up to 2"},
      {"/decoder", "null", "decoder: ByteLevel, as the pre-tokenizer"},
      {"/decoder", R"({"type": "CTC"})", "decoder: type: \"CTC\" is not one of ByteLevel, ByteFallback"},
      {"/decoder", R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace"}]})",
       "decoder.decoders[1]: Metaspace is not supported here, Fuse is"},
      {"/decoder",
       R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 2, "stop": 0}]})",
       "decoder.decoders[1]: Strip is not supported here"},
      {"/decoder", R"({"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"})", "decoder.pattern"},
      {"/post_processor/type", R"("Python")", "post_processor.type: \"Python\" is not supported"},
      {"/post_processor", R"({"type": "ByteLevel", "trim_offsets": 1})", "post_processor: trim_offsets: 1 is not true or false"},
      {"/post_processor", R"({"type": "ByteLevel", "add_prefix_space": "no"})", "add_prefix_space: \"no\" is not true or false"},
      {"/post_processor", R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}], "special_tokens": {}})",
       "single[0].SpecialToken: id: \"x\" is not in special_tokens"},
      {"/added_tokens/0/id", "77", "id"},
  };
  EXPECT_EQ(Refusal(Fixture("gpt2")), "");
  for (const Case& one : cases) {
    json file = Fixture("gpt2");
    file[json::json_pointer(one.place)] = json::parse(one.value);
    const std::string message = Refusal(file);
    EXPECT_NE(message.find(one.message), std::string::npos) << one.place << ": " << message;
    EXPECT_NE(message.find("tokenizer.json"), std::string::npos) << one.place << ": " << message;
  }
}

TEST(TokenizerFiles, WhatOtherModelsLackIsRefusedByName) {
  struct Case {
    const char* fixture;
    const char* place;
    const char* value;
    const char* message;
  };
  const Case cases[] = {
      {"unigram", "/model/unk_id", "null", "unk_id: null is not supported"},
      {"unigram", "/model/unk_id", "1000", "unk_id"},
      {"unigram", "/model/vocab/5", R"(["a"])", "model.vocab[5]: [\"a\"], a token and its score expected"},
      {"unigram", "/model/byte_fallback", "true", "byte_fallback: \"<0x00>\" is not in the vocabulary"},
      {"llama2", "/model/vocab/<0x41>", "null", "has id null"},
      {"wordpiece", "/model/unk_token", R"("[NO]")", "\"[NO]\" is not in the vocabulary"},
      {"llama2", "/model/end_of_word_suffix", R"("</w>")", "end_of_word_suffix: \"</w>\" is not supported without ByteLevel"},
      {"wordlevel", "/pre_tokenizer", R"({"type": "ByteLevel", "add_prefix_space": false})", "is not supported with ByteLevel"},
      {"wordlevel", "/decoder", R"({"type": "BPEDecoder", "suffix": "e"})", "of BPEDecoder, is not supported there"},
      {"wordlevel", "/model/continuing_subword_prefix", R"("##")", "continuing_subword_prefix"},
  };
  for (const Case& one : cases) {
    json file = Fixture(one.fixture);
    EXPECT_EQ(Refusal(file), "");
    file[json::json_pointer(one.place)] = json::parse(one.value);
    const std::string message = Refusal(file);
    EXPECT_NE(message.find(one.message), std::string::npos) << one.fixture << one.place << ": " << message;
  }
}

// As the package does. What the first fields ask for is done to batches.
TEST(TokenizerFiles, FieldsOfTheFile) {
  json file = Fixture("gpt2");
  file["truncation"] = {{"max_length", 4}};
  file["padding"] = {{"pad_id", 0}};
  EXPECT_EQ(Refusal(file), "");
  file.erase("version");
  EXPECT_EQ(Refusal(file), "");
  file["version"] = "2.0";
  EXPECT_NE(Refusal(file).find("tokenizer.json: version: \"2.0\" is not \"1.0\""), std::string::npos) << Refusal(file);
  file.erase("version");
  file["pretokenizer"] = nullptr;
  EXPECT_NE(Refusal(file).find("tokenizer.json: unknown field \"pretokenizer\" (did you mean pre_tokenizer?)"), std::string::npos)
      << Refusal(file);
  EXPECT_NE(Refusal({{"added_tokens", json::array()}}).find("the field \"model\" is missing"), std::string::npos);
}

// What the files leave out says which model it is.
TEST(TokenizerFiles, ModelsWithoutAType) {
  const std::pair<const char*, format::TokenizerKind> cases[] = {{"llama2", format::TokenizerKind::Bpe},
                                                                 {"unigram", format::TokenizerKind::Unigram},
                                                                 {"wordpiece", format::TokenizerKind::WordPiece},
                                                                 {"wordlevel", format::TokenizerKind::WordLevel}};
  for (const auto& [name, kind] : cases) {
    json file = Fixture(name);
    file["model"].erase("type");
    const Folder folder;
    folder.Write("tokenizer.json", file.dump());
    EXPECT_EQ(ReadTokenizer(folder.path(), 1000).kind, kind) << name;
  }
}

std::string RefusalOfLines(const std::string& text, TokenizerFiles files) {
  const Folder folder;
  folder.Write(files == TokenizerFiles::kRwkv ? "rwkv_vocab.txt" : "characters.json", text);
  try {
    ReadTokenizer(folder.path(), 1000, files);
    return "";
  } catch (const ConvertError& error) {
    return error.what();
  }
}

TEST(TokenizerFiles, RwkvVocabulary) {
  const auto refusal = [](const std::string& text) { return RefusalOfLines(text, TokenizerFiles::kRwkv); };
  EXPECT_EQ(refusal("1 '\\x00' 1\n2 b'\\xff\\xfe' 2\n3 \"it's\" 4\n4 '\\u00e9\\n\\\\' 4\r\n"), "");
  for (const char* line : {"1 'ab' 3", "1 'ab 2", "x 'a' 1", "1 a 1", "1 '\\q' 2", "1 '' 0", "1 '\\ud800' 3", "1 'a' 1 "}) {
    EXPECT_NE(refusal(std::string("7 'z' 1\n") + line).find("rwkv_vocab.txt: line 2: "), std::string::npos) << line;
  }
  EXPECT_NE(refusal("0 'a' 1").find("id 0"), std::string::npos);
  EXPECT_NE(refusal("1 'a' 1\n2 'a' 1").find("twice"), std::string::npos);
  EXPECT_NE(refusal("").find("no tokens"), std::string::npos);
}

TEST(TokenizerFiles, Characters) {
  const auto refusal = [](const std::string& text) { return RefusalOfLines(text, TokenizerFiles::kCharacters); };
  EXPECT_EQ(refusal(R"(["\n", "a", "<unk>", "\u00e9"])"), "");
  EXPECT_NE(refusal(R"(["a", "bc"])").find("[1]: \"bc\", one character expected"), std::string::npos);
  EXPECT_NE(refusal(R"(["a", "b", "a"])").find("[2]: \"a\" is there twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"a": 1})").find("a list of characters"), std::string::npos);
}

TEST(TokenizerFiles, TheVocabularyOfTheConfigHoldsEveryId) {
  const json file = Fixture("gpt2");
  const size_t ids = file["model"]["vocab"].size() + 7 - 2;  // added tokens, two of which are in the vocabulary
  EXPECT_EQ(Refusal(file, 1000), "");
  const std::string message = Refusal(file, static_cast<uint32_t>(ids) - 100);
  EXPECT_NE(message.find("vocab_size"), std::string::npos) << message;
}

TEST(TokenizerFiles, VocabAndMergesAreReadWhereThereIsNoTokenizerJson) {
  const json model = Fixture("gpt2")["model"];
  std::string merges = "#version: 0.2\n";
  for (const json& merge : model["merges"]) {
    merges += merge.is_string() ? merge.get<std::string>() : merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    merges += "\n";
  }
  const Folder folder;
  folder.Write("vocab.json", model["vocab"].dump());
  folder.Write("merges.txt", merges);
  folder.Write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  const TokenizerData data = ReadTokenizer(folder.path(), 1000);
  EXPECT_EQ(data.merges.size(), model["merges"].size());
  EXPECT_EQ(data.piece_ends.size(), model["vocab"].size());
  EXPECT_EQ(data.bos_token, model["vocab"]["<s>"].get<int32_t>());
  EXPECT_EQ(data.eos_token, model["vocab"]["</s>"].get<int32_t>());
  EXPECT_EQ(data.special[static_cast<size_t>(data.eos_token)], 1);
  EXPECT_EQ(data.splits.size(), 1u);
  EXPECT_FALSE(data.trim_offsets);
  EXPECT_EQ(data.added_ids.size(), 2u);
  folder.Write("tokenizer_config.json",
               R"({"eos_token": "<|end|>", "added_tokens_decoder": {"999": {"content": "<|end|>", "special": true}}})");
  const TokenizerData more = ReadTokenizer(folder.path(), 1000);
  EXPECT_EQ(more.eos_token, 999);
  EXPECT_EQ(more.added_ids, std::vector<uint32_t>{999});
}

TEST(TokenizerFiles, AnEndTokenThatTheTokenizerLacks) {
  const Folder folder;
  folder.Write("tokenizer.json", Fixture("gpt2").dump());
  folder.Write("tokenizer_config.json", R"({"eos_token": "<nosuch>"})");
  try {
    ReadTokenizer(folder.path(), 1000);
    FAIL() << "no error";
  } catch (const ConvertError& error) {
    EXPECT_NE(std::string(error.what()).find("eos_token: \"<nosuch>\" is no token"), std::string::npos) << error.what();
  }
}

// As files of older versions of the package have it.
TEST(TokenizerFiles, MetaspaceOfOlderFiles) {
  const auto read = [](const std::string& metaspace) {
    json file = Fixture("gpt2");
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array()}};
    file["pre_tokenizer"]["pretokenizers"] = {json::parse(metaspace), {{"type", "ByteLevel"}, {"add_prefix_space", false}}};
    const Folder folder;
    folder.Write("tokenizer.json", file.dump());
    return ReadTokenizer(folder.path(), 1000);
  };
  const TokenizerData with = read(R"({"type": "Metaspace", "replacement": "_", "str_rep": "_", "add_prefix_space": true})");
  EXPECT_TRUE(with.prefix_space);
  EXPECT_FALSE(with.prefix_first);
  EXPECT_EQ(with.space, "_");
  EXPECT_EQ(with.splits.size(), 2u);
  EXPECT_FALSE(read(R"({"type": "Metaspace", "replacement": "_", "str_rep": "_", "add_prefix_space": false})").prefix_space);
  EXPECT_TRUE(read(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})").prefix_first);
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "_", "split": false})").splits.size(), 1u);
}

// Fine-tuning adds tokens that the model has no rows for.
TEST(TokenizerFiles, AddedTokensWithoutRowsAreLeftOut) {
  json file = json::parse(std::ifstream("tests/data/tokenizers/llama3/tokenizer.json"));
  const Folder folder;
  folder.Write("tokenizer.json", file.dump());
  const uint32_t whole = static_cast<uint32_t>(ReadTokenizer(folder.path(), 100000).piece_ends.size());
  EXPECT_EQ(ReadTokenizer(folder.path(), whole).note, "");
  const TokenizerData cut = ReadTokenizer(folder.path(), whole - 1);
  EXPECT_EQ(cut.piece_ends.size(), whole - 1);
  EXPECT_NE(cut.note.find("1 added tokens of the tokenizer are left out"), std::string::npos) << cut.note;
  EXPECT_NE(Refusal(file, 10).find("vocab_size 10 is too small"), std::string::npos);  // tokens of the model itself
}

// Damage that the FlatBuffer's verifier cannot see.
TEST(TokenizerTablesTest, DamageIsRefused) {
  const TokenizerData good = ReadTokenizer("tests/data/tokenizers/llama3", 1000);
  EXPECT_TRUE(test::TokenizerGraph(good).Read().ok());
  using Damage = void (*)(TokenizerData*);
  const Damage damages[] = {
      [](TokenizerData* data) { data->piece_ends[5] = 1u << 30; },
      [](TokenizerData* data) { data->piece_ends.resize(2000, data->piece_ends.back()); },
      [](TokenizerData* data) { data->special.pop_back(); },
      [](TokenizerData* data) { data->merges[3] = format::Merge(0, 1000, 0); },
      [](TokenizerData* data) { data->merge_slots.push_back(0); },
      [](TokenizerData* data) { data->merge_slots.assign(data->merge_slots.size(), 0); },
      [](TokenizerData* data) { data->merge_slots[0] = static_cast<uint32_t>(data->merges.size()); },
      [](TokenizerData* data) { data->word_slots[0] = 5000; },
      [](TokenizerData* data) { data->byte_ids[0] = -2; },
      [](TokenizerData* data) { data->byte_ids.pop_back(); },
      [](TokenizerData* data) { data->byte_ids.resize(511); },
      [](TokenizerData* data) { data->byte_ids.resize(512, -2); },
      [](TokenizerData* data) { data->unk_id = 5000; },
      [](TokenizerData* data) { data->added_ids[0] = 5000; },
      [](TokenizerData* data) { data->added_flags.pop_back(); },
      [](TokenizerData* data) { data->raw.values[1] = 5000; },
      [](TokenizerData* data) { data->prefix.assign(17, 0); },
      [](TokenizerData* data) { data->suffix = {5000}; },
      [](TokenizerData* data) { data->splits.resize(9, data->splits[0]); },
      [](TokenizerData* data) { data->prefix_level = static_cast<uint8_t>(data->splits.size() + 1); },
      [](TokenizerData* data) { data->space = "12345"; },
      [](TokenizerData* data) { data->added_flags[0] |= 8; },
      [](TokenizerData* data) {
        data->word = {1, 2};
      },
      [](TokenizerData* data) { data->splits[0].pattern[2] += 1; },
      [](TokenizerData* data) {
        data->normalizer = {0, 0};
      },
  };
  for (size_t i = 0; i < std::size(damages); ++i) {
    TokenizerData bad = good;
    damages[i](&bad);
    const Status status = test::TokenizerGraph(bad).Read().status();
    EXPECT_FALSE(status.ok()) << "damage " << i;
    EXPECT_EQ(std::string(status.message()).rfind("tokenizer: ", 0), 0u) << status.message();
  }
}

TEST(TokenizerTablesTest, DamageOfOtherModelsIsRefused) {
  using Damage = void (*)(TokenizerData*);
  const std::pair<const char*, Damage> damages[] = {
      {"unigram", [](TokenizerData* data) { data->vocabulary.scores.pop_back(); }},
      {"unigram", [](TokenizerData* data) { data->vocabulary.unk_id = -1; }},
      {"unigram", [](TokenizerData* data) { data->vocabulary.strings = {}; }},
      {"unigram",
       [](TokenizerData* data) {
         data->vocabulary.strings = {{0, 0}, {}, {0}};
       }},
      {"unigram", [](TokenizerData* data) { data->joints.resize(3); }},
      {"unigram_bytes", [](TokenizerData* data) { data->vocabulary.byte_ids[7] = 5000; }},
      {"unigram_bytes", [](TokenizerData* data) { data->vocabulary.byte_ids.pop_back(); }},
      {"llama2", [](TokenizerData* data) { data->vocabulary.strings.values[1] = 5000; }},
      {"llama2", [](TokenizerData* data) { data->vocabulary.strings.first_edges[1] = 0; }},
      {"wordpiece", [](TokenizerData* data) { data->vocabulary.unk_id = 5000; }},
      {"wordpiece", [](TokenizerData* data) { data->first_ids[1] = data->first_ids[0]; }},
      {"wordpiece", [](TokenizerData* data) { data->first_piece_ends.pop_back(); }},
      {"wordpiece", [](TokenizerData* data) { data->first_piece_ends[0] = 1u << 20; }},
  };
  for (const auto& [name, damage] : damages) {
    TokenizerData bad = ReadTokenizer(std::string("tests/data/tokenizers/") + name, 1000);
    EXPECT_TRUE(test::TokenizerGraph(bad).Read().ok()) << name;
    damage(&bad);
    const Status status = test::TokenizerGraph(bad).Read().status();
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_EQ(std::string(status.message()).rfind("tokenizer: ", 0), 0u) << status.message();
  }
}

}  // namespace
}  // namespace tarn::convert
