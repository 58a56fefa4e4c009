// The .model files of SentencePiece.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_SENTENCEPIECE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_SENTENCEPIECE_H_

#include <string>

#include "tools/convert/json/json.h"

namespace tarn::convert {

struct SentencePieceModel {
  Json tokenizer;        // as tokenizer.json says it, without a post-processor
  std::string bos, eos;  // empty: there is none
};

// As the package `transformers` converts the models of T5 and Llama: the ids are those of the package `sentencepiece`, apart from
// special tokens in a text. Errors: a file that is damaged, a kind of model or an option that is not supported, by its name.
SentencePieceModel ReadSentencePiece(const std::string& path);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_SENTENCEPIECE_H_
