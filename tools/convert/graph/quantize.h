// Weights as small integers with scales: w = scale * q.
#ifndef TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_
#define TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "schema/tarn_generated.h"
#include "tools/convert/checkpoint/half.h"

namespace tarn::convert {

// Symmetric int8, one scale per row: a row of a dense weight is an output channel, a row of an embedding table a token.
// q[i] in [-127, 127] with |w[i] - s q[i]| <= s / 2 (and the rounding of f32); returns s = max|w| / 127 > 0. A row of zeros has s
// = 1. Every w[i] is finite. (Scales of least squared error, as below, have 2 % less of it: 0.0001 nats, not worth their code.)
float QuantizeRow(const float* w, size_t count, int8_t* q);

// int4, int3 and int2 (I4, I3 and I2), one scale per block of a row.
constexpr size_t kScaleBlock = 32;

constexpr bool IsBlockwise(format::DType dtype) {
  return dtype == format::DType::I4 || dtype == format::DType::I3 || dtype == format::DType::I2;
}

// What q can be: every `step`-th number of a range. Scales of int3 have a sign, so that -4, which has no counterpart, is of use for
// either sign of w. The four levels of int2 are odd, as many on either side of 0: two calibrated language models lose 7 % and
// 26 % less than with -2 to 1 and scales of either sign.
struct Levels {
  int least, most;
  int step;  // 1, or 2: the odd ones
  bool signed_scale;

  constexpr bool HasZero() const { return step == 1; }
};
constexpr Levels LevelsOf(format::DType dtype) {
  if (dtype == format::DType::I2) return {-3, 3, 2, false};
  return dtype == format::DType::I3 ? Levels{-4, 3, 1, true} : Levels{-8, 7, 1, false};
}

// Returns the bits of s, a normal bf16, > 0 but for int3: of all bf16 within a factor of 0.5 to 1.15 of max|w| / most the one with
// the least sum of (w[i] - s q[i])^2, where q[i] is w[i] / s rounded to a level. A scale that is smaller than the largest element
// needs costs that one element and makes the others finer. A block of zeros has s = 1, or the smallest s if 0 is no level. Every
// w[i] is finite.
uint16_t QuantizeBlock(const Levels& levels, const float* w /* [kScaleBlock] */, int8_t* q /* [kScaleBlock] */);

// The same for every block of a row.
void QuantizeBlocks(format::DType dtype, const float* w, size_t columns, int8_t* q, uint16_t* scales /* [columns / kScaleBlock] */);

// A row of such numbers as the file has it (schema/tarn.fbs), and element i of it. `columns` is a multiple of kScaleBlock.
size_t PackedBytes(format::DType dtype, size_t columns);
void PackRow(format::DType dtype, const int8_t* q, size_t columns, uint8_t* packed /* [PackedBytes] */);
int PackedAt(format::DType dtype, const uint8_t* packed, size_t columns, size_t i);

// The sizes of scales that are tried, for a block whose largest magnitude is `max` in [0.5, 1): the bits of a bf16, and of all
// smaller ones in turn. bf16 has 128 numbers in an octave: they go from 1.15 down to 0.5 of max / most.
constexpr size_t kScaleCandidates = 160;
inline uint16_t FirstScale(const Levels& levels, float max) {
  return static_cast<uint16_t>(BitsOfFloat(max * (1.15f / static_cast<float>(levels.most))) >> 16);
}

// x / s, of which `inverse` is 1 / s, to the nearest of the levels. Ties: to even; of int2 0 becomes 1, 2 becomes 1 and -2 becomes
// -3.
inline int LevelOf(const Levels& levels, float x, float inverse) {
  // Between 2^23 and 2^24 the last bit of an f32 is 1: the sum is rounded to integers. It is done like this so that the compiler
  // makes vectors of it.
  constexpr uint32_t kShiftBits = 0x4B400000;  // 1.5 * 2^23
  const float least = static_cast<float>(levels.least), most = static_cast<float>(levels.most);
  const float inside = std::max(least, std::min(most, x * inverse));
  if (levels.step == 1) return static_cast<int32_t>(BitsOfFloat(inside + 0x1.8p23f) - kShiftBits);
  return static_cast<int32_t>(BitsOfFloat((inside - 1) * 0.5f + 0x1.8p23f) - kShiftBits) * 2 + 1;
}

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_GRAPH_QUANTIZE_H_
