// Code points of UTF-8 text, one at a time.
#ifndef TARN_RUNTIME_TEXT_CODE_POINT_H_
#define TARN_RUNTIME_TEXT_CODE_POINT_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

constexpr uint32_t kReplacementCode = 0xFFFD;

struct CodePoint {
  uint32_t code;   // kReplacementCode if there is no character
  uint32_t bytes;  // 1 if there is none
  bool is_valid;
  bool is_cut;  // the text ends in it, and what there is of it is right
};

// The character at `at`, at least one byte before `end`.
CodePoint DecodeCodePoint(const uint8_t* at, const uint8_t* end);

// Writes a code point, 1 to 4 bytes; returns how many.
size_t EncodeCodePoint(uint32_t code, char* out);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_CODE_POINT_H_
