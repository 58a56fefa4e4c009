#include "tools/convert/calibrate/block_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/convert/checkpoint/half.h"
#include "tools/convert/graph/quantize.h"

namespace tarn::convert {
namespace {

using Candidates = std::array<float, kScaleCandidates>;
using Block = std::array<float, kScaleBlock>;

struct Choice {
  float scale;
  double cost;
};

// Of the scales, which all are tried at once, the one with which rounding x costs least.
Choice Cheapest(const Levels& levels, const Candidates& scale, const Block& x, const float* factor, size_t stride,
                const float* spread) {
  Candidates inverse, error, cost = {};
  for (size_t c = 0; c < kScaleCandidates; ++c) inverse[c] = 1 / scale[c];
  std::array<Candidates, kScaleBlock> rest;  // rest[i][c] is weight i with scale c, after what it takes from those before it
  for (size_t i = 0; i < kScaleBlock; ++i) rest[i].fill(x[i]);
  for (size_t i = 0; i < kScaleBlock; ++i) {
    const float weight = spread[i] * spread[i];
    for (size_t c = 0; c < kScaleCandidates; ++c) {
      error[c] = rest[i][c] - scale[c] * static_cast<float>(LevelOf(levels, rest[i][c], inverse[c]));
      cost[c] += weight * error[c] * error[c];
    }
    for (size_t j = i + 1; j < kScaleBlock; ++j) {
      const float share = factor[i * stride + j];
      for (size_t c = 0; c < kScaleCandidates; ++c) rest[j][c] -= share * error[c];
    }
  }
  const auto best = std::min_element(cost.begin(), cost.end());
  return {scale[static_cast<size_t>(best - cost.begin())], static_cast<double>(*best)};
}

}  // namespace

float BestBlockScale(const Levels& levels, const float* weights, const float* factor, size_t stride, const float* spread) {
  float max = 0;
  for (size_t i = 0; i < kScaleBlock; ++i) max = std::max(max, std::fabs(weights[i]));
  if (max == 0) return levels.HasZero() ? 1 : NearestScale(0);
  // In units of a power of two, so that no square overflows or vanishes.
  int exponent = 0;
  const float mantissa = std::frexp(max, &exponent);
  const double unit = std::ldexp(1.0, -exponent);
  Candidates scale;
  for (size_t c = 0; c < kScaleCandidates; ++c) {
    scale[c] = FloatOfBf16(static_cast<uint16_t>(FirstScale(levels, mantissa) - c));
  }
  Block x, turned;
  for (size_t i = 0; i < kScaleBlock; ++i) {
    x[i] = static_cast<float>(weights[i] * unit);
    turned[i] = -x[i];  // as a scale of the other sign has it
  }
  Choice best = Cheapest(levels, scale, x, factor, stride, spread);
  if (levels.signed_scale) {
    const Choice other = Cheapest(levels, scale, turned, factor, stride, spread);
    if (other.cost < best.cost) best = {-other.scale, other.cost};
  }
  return std::copysign(NearestScale(std::ldexp(static_cast<double>(std::fabs(best.scale)), exponent)), best.scale);
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
