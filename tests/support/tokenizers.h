// Tokenizers for tests: the files of a folder, as a model file would have them.
#ifndef TARN_TESTS_SUPPORT_TOKENIZERS_H_
#define TARN_TESTS_SUPPORT_TOKENIZERS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/model/tokenizer.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::test {

// A graph that has nothing but a tokenizer, and the tables in it.
class TokenizerGraph {
 public:
  explicit TokenizerGraph(const convert::TokenizerData& data, uint32_t vocab_size = kVocabulary) {
    const auto tokenizer = convert::WriteTokenizer(data, &builder_);
    const auto tensors = builder_.CreateVector(std::vector<flatbuffers::Offset<format::Tensor>>());
    const auto states = builder_.CreateVector(std::vector<flatbuffers::Offset<format::State>>());
    const auto programs = builder_.CreateVector(std::vector<flatbuffers::Offset<format::Program>>());
    format::FinishModelBuffer(builder_, format::CreateModel(builder_, 0, vocab_size, 0, tokenizer, 0, tensors, states, programs));
  }
  explicit TokenizerGraph(const std::string& folder) : TokenizerGraph(ReadFolder(folder)) {}

  // By the files that there are.
  static convert::TokenizerData ReadFolder(const std::string& folder) {
    using convert::TokenizerFiles;
    const bool is_rwkv = std::filesystem::exists(folder + "/rwkv_vocab.txt");
    const bool has_characters = std::filesystem::exists(folder + "/characters.json");
    return convert::ReadTokenizer(folder, kVocabulary,
                                  is_rwkv          ? TokenizerFiles::kRwkv
                                  : has_characters ? TokenizerFiles::kCharacters
                                                   : TokenizerFiles::kJson);
  }

  Result<TokenizerTables> Read() const {
    TokenizerTables tables;
    TARN_RETURN_IF_ERROR(ReadTokenizer(*format::GetModel(builder_.GetBufferPointer()), &tables));
    return tables;
  }

  static constexpr uint32_t kVocabulary = 1000;

 private:
  flatbuffers::FlatBufferBuilder builder_;
};

}  // namespace tarn::test

#endif  // TARN_TESTS_SUPPORT_TOKENIZERS_H_
