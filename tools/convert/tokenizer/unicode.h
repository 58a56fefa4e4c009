// What the Unicode character database says of code points, in the versions that tokenizers use.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_H_

#include <cstdint>

namespace tarn::convert {

enum class UnicodeVersion : uint8_t { k8 = 0, k9 = 1, k16 = 2, k17 = 3 };

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_UNICODE_H_
