// The alphabet in which byte-level tokenizers spell bytes.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_BYTE_ALPHABET_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_BYTE_ALPHABET_H_

#include <array>
#include <cstdint>

namespace tarn::convert {

// The code point that stands for a byte: itself where it is printed, else one of those from U+0100. GPT-2's.
const std::array<uint32_t, 256>& ByteAlphabet();

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_BYTE_ALPHABET_H_
