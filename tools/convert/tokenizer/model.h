// The object "model" of tokenizer.json, and its parts that other files have.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_

#include <string>
#include <utility>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

// Errors: another kind of model than BPE, Unigram, WordPiece and WordLevel, an option that is not supported.
void ReadModel(const Json& model, const std::string& where, Vocabulary* vocabulary);

// An object of tokens and their ids. Errors: something else.
void ReadIds(const Json& vocab, const std::string& where, Vocabulary* vocabulary);

// "a b" -> the two tokens. Errors: another number of spaces.
std::pair<std::string, std::string> SplitMerge(const std::string& line, const std::string& where);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_
