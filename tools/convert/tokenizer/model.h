// The object "model" of tokenizer.json.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_

#include <string>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

// Errors: another kind of model than BPE, Unigram, WordPiece and WordLevel, an option that is not supported.
void ReadModel(const Json& model, const std::string& where, Vocabulary* vocabulary);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_
