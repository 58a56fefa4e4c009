// Symmetric int8, one scale per row: a row of a dense weight is an output channel, a row of an embedding table a token.
#ifndef TARN_TOOLS_CONVERT_QUANTIZE_H_
#define TARN_TOOLS_CONVERT_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

namespace tarn::convert {

// q[i] in [-127, 127] with |w[i] - s q[i]| <= s / 2 (and the rounding of f32); returns s = max|w| / 127 > 0. A row of zeros has s
// = 1. Every w[i] is finite.
float QuantizeRow(const float* w, size_t count, int8_t* q);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_QUANTIZE_H_
