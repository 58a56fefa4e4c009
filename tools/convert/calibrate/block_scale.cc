#include "tools/convert/calibrate/block_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/convert/checkpoint/half.h"
#include "tools/convert/graph/quantize.h"

namespace tarn::convert {
namespace {

using Candidates = std::array<float, kInt4Scales>;

// What rounding x costs with each of the scales, which all are tried at once: x[i][c] is weight i with scale c.
void CostsOf(const Candidates& scale, const float* factor, size_t stride, const float* spread, Candidates* x, Candidates* cost) {
  Candidates inverse, error;
  for (size_t c = 0; c < kInt4Scales; ++c) inverse[c] = 1 / scale[c];
  for (size_t i = 0; i < kInt4Block; ++i) {
    const float weight = spread[i] * spread[i];
    for (size_t c = 0; c < kInt4Scales; ++c) {
      error[c] = x[i][c] - scale[c] * static_cast<float>(Int4Of(x[i][c], inverse[c]));
      (*cost)[c] += weight * error[c] * error[c];
    }
    for (size_t j = i + 1; j < kInt4Block; ++j) {
      const float share = factor[i * stride + j];
      for (size_t c = 0; c < kInt4Scales; ++c) x[j][c] -= share * error[c];
    }
  }
}

}  // namespace

float BestBlockScale(const float* weights, const float* factor, size_t stride, const float* spread) {
  float max = 0;
  for (size_t i = 0; i < kInt4Block; ++i) max = std::max(max, std::fabs(weights[i]));
  if (max == 0) return 1;
  // In units of a power of two, so that no square overflows or vanishes.
  int exponent = 0;
  const float mantissa = std::frexp(max, &exponent);
  const double unit = std::ldexp(1.0, -exponent);
  Candidates scale, cost = {};
  for (size_t c = 0; c < kInt4Scales; ++c) scale[c] = FloatOfBf16(static_cast<uint16_t>(FirstInt4Scale(mantissa) - c));
  std::array<Candidates, kInt4Block> x;
  for (size_t i = 0; i < kInt4Block; ++i) x[i].fill(static_cast<float>(weights[i] * unit));
  CostsOf(scale, factor, stride, spread, x.data(), &cost);
  const auto best = static_cast<size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
  return NearestScale(std::ldexp(static_cast<double>(scale[best]), exponent));
}

float NearestScale(double scale) {
  constexpr double kLeast = 0x1p-126, kLargest = 0x1.FEp127;
  if (!(scale > kLeast)) return static_cast<float>(kLeast);
  if (scale > kLargest) return static_cast<float>(kLargest);
  int exponent = 0;
  const double mantissa = std::frexp(scale, &exponent);
  return static_cast<float>(std::min(std::ldexp(std::nearbyint(mantissa * 256), exponent - 8), kLargest));
}

uint16_t Bf16OfScale(float scale) { return static_cast<uint16_t>(BitsOfFloat(scale) >> 16); }

}  // namespace tarn::convert
