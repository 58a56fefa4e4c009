// The object "post_processor" of tokenizer.json: what stands before and after every text.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_POST_PROCESSOR_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_POST_PROCESSOR_H_

#include <string>

#include "tools/convert/json/json.h"
#include "tools/convert/tokenizer/tokenizer.h"

namespace tarn::convert {

// Errors: a type that is not supported, a second template, a template that is not for one text, what is no id.
void ReadPostProcessor(const Json& object, const std::string& where, TokenizerData* data);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_POST_PROCESSOR_H_
