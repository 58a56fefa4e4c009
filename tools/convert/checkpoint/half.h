// f32 from and to 16-bit float formats. Every f16 and bf16 value is an f32 value; the other way rounds to nearest, ties to even.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_HALF_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_HALF_H_

#include <cstdint>
#include <cstring>

namespace tarn::convert {

constexpr float kLargestF16 = 65504;

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
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

// |value| <= kLargestF16.
inline uint16_t F16OfFloat(float value) {
  const uint32_t sign = (BitsOfFloat(value) >> 16) & 0x8000u;
  const uint32_t magnitude = BitsOfFloat(value) & 0x7FFFFFFFu;
  uint32_t half;
  if (magnitude < 0x38800000u) {
    // Below 2^-14 an f16 is a multiple of 2^-24, and so is an f32 in [0.5, 1): their sum is rounded there.
    half = BitsOfFloat(FloatOfBits(magnitude) + 0.5f) - 0x3F000000u;
  } else {
    half = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_HALF_H_
