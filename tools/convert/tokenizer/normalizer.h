// The "normalizer" of tokenizer.json.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZER_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZER_H_

#include <string>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

// Errors: what is not supported, by its name and place.
void ReadNormalizer(const Json& object, const std::string& where, TokenizerData* data);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_NORMALIZER_H_
