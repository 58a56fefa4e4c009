// f32 from the 16-bit float formats of checkpoints. Exact: every f16 and bf16 value is an f32 value.
#ifndef TARN_TOOLS_CONVERT_HALF_H_
#define TARN_TOOLS_CONVERT_HALF_H_

#include <cstdint>
#include <cstring>

namespace tarn::convert {

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline float FloatOfBf16(uint16_t bits) { return FloatOfBits(static_cast<uint32_t>(bits) << 16); }

inline float FloatOfF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 0x1F) return FloatOfBits(sign | 0x7F800000u | (fraction << 13));  // infinity and NaN
  return FloatOfBits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_HALF_H_
