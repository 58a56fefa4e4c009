// Weights as small integers with scales: w = scale * q.
#ifndef TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_
#define TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

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

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_
