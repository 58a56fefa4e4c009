// What tokens are found by in a text, but for BPE over bytes (schema/tarn.fbs, Vocabulary), and where words may be cut.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_STRINGS_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_STRINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/tokenizer/vocabulary.h"

namespace tarn::convert {

// The ids of the tokens <0x00> to <0xFF>. Errors: one is missing, and may be needed.
std::vector<int32_t> FallbackIds(const Vocabulary& vocabulary, const std::string& where);

// vocabulary and joints of `data`, which has its pieces and, of BPE, merges. Errors: names `where` and the token.
void CompileStrings(const Vocabulary& vocabulary, const std::string& where, TokenizerData* data);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_STRINGS_H_
