// What "tokenizer" of config.json asks for.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_FILES_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_FILES_H_

#include <cstdint>

namespace tarn::convert {

enum class TokenizerFiles : uint8_t {
  kNone,        // token ids
  kBytes,       // no files
  kJson,        // tokenizer.json, or vocab.json and merges.txt
  kRwkv,        // rwkv_vocab.txt
  kCharacters,  // characters.json
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_FILES_H_
