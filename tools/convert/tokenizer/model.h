// The object "model" of tokenizer.json, and its parts that other files have.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_

#include <string>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

// Errors: another kind of model than BPE, Unigram, WordPiece and WordLevel, an option that is not supported.
void ReadModel(const Json& model, const std::string& where, Vocabulary* vocabulary);

// An object of tokens and their ids. Errors: something else.
void ReadIds(const Json& vocab, const std::string& where, Vocabulary* vocabulary);

// The next merge, of tokens that ReadIds() has read. Errors: one of them, or what they make, is no token.
void AddMerge(const std::string& left, const std::string& right, const std::string& where, Vocabulary* vocabulary);
// The same of "a b". Errors: another number of spaces, too.
void AddMerge(const std::string& line, const std::string& where, Vocabulary* vocabulary);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_MODEL_H_
