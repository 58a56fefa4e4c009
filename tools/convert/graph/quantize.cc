#include "tools/convert/graph/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/planes.h"
#include "tools/convert/checkpoint/half.h"

namespace tarn::convert {
namespace {

constexpr uint16_t kLeastScale = 0x0080;    // 2^-126, the smallest normal bf16
constexpr uint16_t kLargestScale = 0x7F7F;  // the largest finite one
constexpr uint16_t kOne = 0x3F80;
constexpr uint16_t kSign = 0x8000;

using Block = std::array<float, kScaleBlock>;

// The best size of a scale of x, with 0.5 <= max|x| < 1: its bits, and in `least_error` the sum of squares.
uint16_t BestScale(const Levels& levels, const Block& x, float max, float* least_error) {
  const uint16_t first = FirstScale(levels, max);
  std::array<float, kScaleCandidates> scale, inverse, error = {};
  for (size_t c = 0; c < kScaleCandidates; ++c) {
    scale[c] = FloatOfBf16(static_cast<uint16_t>(first - c));
    inverse[c] = 1 / scale[c];
  }
  for (const float value : x) {
    for (size_t c = 0; c < kScaleCandidates; ++c) {
      const float difference = value - scale[c] * static_cast<float>(LevelOf(levels, value, inverse[c]));
      error[c] += difference * difference;
    }
  }
  const auto best = std::min_element(error.begin(), error.end());
  *least_error = *best;
  return static_cast<uint16_t>(first - (best - error.begin()));
}

// Of both signs: -x with scale s is x with scale -s.
int BestSignedScale(const Levels& levels, const Block& x, float max, bool* negative) {
  float error = 0;
  const uint16_t scale = BestScale(levels, x, max, &error);
  *negative = false;
  if (!levels.signed_scale) return scale;
  Block turned;
  std::transform(x.begin(), x.end(), turned.begin(), [](float value) { return -value; });
  float turned_error = 0;
  const uint16_t turned_scale = BestScale(levels, turned, max, &turned_error);
  *negative = turned_error < error;
  return *negative ? turned_scale : scale;
}

}  // namespace

float QuantizeRow(const float* w, size_t count, int8_t* q) {
  float max = 0;
  for (size_t i = 0; i < count; ++i) max = std::max(max, std::fabs(w[i]));
  // A subnormal scale would have too few digits: such a row is zero for all purposes, and the smallest normal scale says so.
  const float scale = max == 0 ? 1.0f : std::max(max / 127.0f, std::numeric_limits<float>::min());
  for (size_t i = 0; i < count; ++i) {
    const long rounded = std::lrintf(w[i] / scale);
    q[i] = static_cast<int8_t>(std::clamp(rounded, -127L, 127L));
  }
  return scale;
}

uint16_t QuantizeBlock(const Levels& levels, const float* w, int8_t* q) {
  float max = 0;
  for (size_t i = 0; i < kScaleBlock; ++i) max = std::max(max, std::fabs(w[i]));
  uint16_t scale = levels.HasZero() ? kOne : kLeastScale;
  Block x = {};
  float inverse = 1;
  if (max > 0) {
    // In units of a power of two, so that no square overflows or vanishes.
    int exponent = 0;
    const float mantissa = std::frexp(max, &exponent);
    const double unit = std::ldexp(1.0, -exponent);
    for (size_t i = 0; i < kScaleBlock; ++i) x[i] = static_cast<float>(w[i] * unit);
    bool negative = false;
    const int bits = BestSignedScale(levels, x, mantissa, &negative) + exponent * 128;  // 128: one in the exponent of a bf16
    scale = static_cast<uint16_t>(std::clamp<int>(bits, kLeastScale, kLargestScale) | (negative ? kSign : 0));
    inverse = 1 / std::ldexp(FloatOfBf16(scale), -exponent);
  }
  for (size_t i = 0; i < kScaleBlock; ++i) q[i] = static_cast<int8_t>(LevelOf(levels, x[i], inverse));
  return scale;
}

void QuantizeBlocks(format::DType dtype, const float* w, size_t columns, int8_t* q, uint16_t* scales) {
  const Levels levels = LevelsOf(dtype);
  for (size_t i = 0; i < columns; i += kScaleBlock) scales[i / kScaleBlock] = QuantizeBlock(levels, w + i, q + i);
}

static unsigned PlaneBits(format::DType dtype) { return dtype == format::DType::I3 ? 3 : 2; }

size_t PackedBytes(format::DType dtype, size_t columns) {
  return dtype == format::DType::I4 ? columns / 2 : PlaneRowBytes(PlaneBits(dtype), columns);
}

void PackRow(format::DType dtype, const int8_t* q, size_t columns, uint8_t* packed) {
  if (dtype == format::DType::I4) {
    for (size_t i = 0; i < columns; i += 2) packed[i / 2] = static_cast<uint8_t>((q[i] + 8) | ((q[i + 1] + 8) << 4));
    return;
  }
  std::fill_n(packed, PackedBytes(dtype, columns), uint8_t{0});
  for (size_t i = 0; i < columns; ++i) AddPlaneWeight(PlaneBits(dtype), q[i], i % 8, packed + i / 8, columns / 8);
}

int PackedAt(format::DType dtype, const uint8_t* packed, size_t columns, size_t i) {
  if (dtype == format::DType::I4) return (packed[i / 2] >> (i % 2 * 4) & 15) - 8;
  return PlaneWeightAt(PlaneBits(dtype), packed, columns, i);
}

}  // namespace tarn::convert
