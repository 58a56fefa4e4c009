// The "pre_tokenizer" of tokenizer.json.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_PRE_TOKENIZER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_PRE_TOKENIZER_H_

#include <string>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

// Splits, the space before a piece, what stands for spaces in words, and whether words are spelled in the byte-level alphabet.
// Errors: what is not supported, by its name and place.
void ReadPreTokenizer(const Json& object, const std::string& where, TokenizerData* data);

// GPT-2's.
SplitStep Gpt2Split(const std::string& where);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_PRE_TOKENIZER_H_
