// Weights as small integers with scales: w = scale * q.
#ifndef TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_
#define TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tools/convert/checkpoint/half.h"

namespace tarn::convert {

// Symmetric int8, one scale per row: a row of a dense weight is an output channel, a row of an embedding table a token.
// q[i] in [-127, 127] with |w[i] - s q[i]| <= s / 2 (and the rounding of f32); returns s = max|w| / 127 > 0. A row of zeros has s
// = 1. Every w[i] is finite. (Scales of least squared error, as below, have 2 % less of it: 0.0001 nats, not worth their code.)
float QuantizeRow(const float* w, size_t count, int8_t* q);

// int4, one scale per block of a row (kI4Block of the format).
constexpr size_t kInt4Block = 32;

// q[i] in [-8, 7], two to a byte: the even one in the low half, as q + 8. Returns the bits of s, a normal bf16 > 0: of all bf16
// within a factor of 0.5 to 1.15 of max|w| / 7 the one with the least sum of (w[i] - s q[i])^2, where q[i] is w[i] / s rounded into
// the range. A scale that is smaller than the largest element needs costs that one element and makes the others finer. A block of
// zeros has s = 1. Every w[i] is finite.
uint16_t QuantizeBlock(const float* w /* [kInt4Block] */, uint8_t* packed /* [kInt4Block / 2] */);

// The scales that are tried, for a block whose largest magnitude is `max` in [0.5, 1): the bits of a bf16, and of all smaller ones
// in turn. bf16 has 128 numbers in an octave: they go from 1.15 down to 0.5 of max / 7.
constexpr size_t kInt4Scales = 160;
inline uint16_t FirstInt4Scale(float max) { return static_cast<uint16_t>(BitsOfFloat(max * (1.15f / 7)) >> 16); }

// x / s, of which `inverse` is 1 / s, to the nearest integer within [-8, 7], ties to even.
inline int Int4Of(float x, float inverse) {
  // Between 2^23 and 2^24 the last bit of an f32 is 1: the sum is rounded to integers. It is done like this so that the compiler
  // makes vectors of it.
  constexpr uint32_t kShiftBits = 0x4B400000;  // 1.5 * 2^23
  return static_cast<int32_t>(BitsOfFloat(std::max(-8.0f, std::min(7.0f, x * inverse)) + 0x1.8p23f) - kShiftBits);
}

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_
