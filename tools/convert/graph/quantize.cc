#include "tools/convert/graph/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tools/convert/checkpoint/half.h"

namespace tarn::convert {
namespace {

constexpr uint16_t kLeastScale = 0x0080;    // 2^-126, the smallest normal bf16
constexpr uint16_t kLargestScale = 0x7F7F;  // the largest finite one
constexpr uint16_t kOne = 0x3F80;

// The bits of the best scale of a block with 0.5 <= max|x| < 1.
uint16_t BestScale(const std::array<float, kInt4Block>& x, float max) {
  const uint16_t first = FirstInt4Scale(max);
  std::array<float, kInt4Scales> scale, inverse, error = {};
  for (size_t c = 0; c < kInt4Scales; ++c) {
    scale[c] = FloatOfBf16(static_cast<uint16_t>(first - c));
    inverse[c] = 1 / scale[c];
  }
  for (const float value : x) {
    for (size_t c = 0; c < kInt4Scales; ++c) {
      const float difference = value - scale[c] * static_cast<float>(Int4Of(value, inverse[c]));
      error[c] += difference * difference;
    }
  }
  return static_cast<uint16_t>(first - (std::min_element(error.begin(), error.end()) - error.begin()));
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

uint16_t QuantizeBlock(const float* w, uint8_t* packed) {
  float max = 0;
  for (size_t i = 0; i < kInt4Block; ++i) max = std::max(max, std::fabs(w[i]));
  uint16_t scale = kOne;
  std::array<float, kInt4Block> x = {};
  float inverse = 1;
  if (max > 0) {
    // In units of a power of two, so that no square overflows or vanishes.
    int exponent = 0;
    const float mantissa = std::frexp(max, &exponent);
    const double unit = std::ldexp(1.0, -exponent);
    for (size_t i = 0; i < kInt4Block; ++i) x[i] = static_cast<float>(w[i] * unit);
    const int bits = BestScale(x, mantissa) + exponent * 128;  // 128: one in the exponent of a bf16
    scale = static_cast<uint16_t>(std::clamp<int>(bits, kLeastScale, kLargestScale));
    inverse = 1 / std::ldexp(FloatOfBf16(scale), -exponent);
  }
  for (size_t i = 0; i < kInt4Block; i += 2) {
    const int low = Int4Of(x[i], inverse) + 8;
    const int high = Int4Of(x[i + 1], inverse) + 8;
    packed[i / 2] = static_cast<uint8_t>(low | (high << 4));
  }
  return scale;
}

}  // namespace tarn::convert
