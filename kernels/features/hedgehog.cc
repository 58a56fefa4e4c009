// Hedgehog features as flash-linear-attention has them (MATH 1.7): phi(x) = softmax([2y; -2y]), y = Wx + bias.
#include <algorithm>
#include <cmath>

#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/hedgehog.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The largest of |x|, a NaN aside.
HWY_INLINE float LargestSize(size_t n, const float* x) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF high = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) high = hn::Max(high, hn::Abs(hn::LoadU(d, x + i)));
  if (i < n) high = hn::Max(high, hn::Abs(hn::LoadN(d, x + i, n - i)));
  return hn::ReduceMax(d, high);
}

// y = exp(factor * x - top)
HWY_INLINE void ShiftedExp(size_t n, float factor, float top, const float* x, float* y) {
  Map(n, x, y, [factor, top](DF d, VF v) HWY_ATTR { return Exp(d, hn::MulSub(hn::Set(d, factor), v, hn::Set(d, top))); });
}

// y is formed where the first half will stand, so the other half goes first.
void HedgehogFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, 2 * count});
  for (size_t r = 0; r < a.rows; ++r) {
    float* phi = a.phi + r * 2 * count;
    Map2(count, phi, a.bias, phi, [](DF, VF v, VF b) HWY_ATTR { return hn::Add(v, b); });
    const float top = 2 * LargestSize(count, phi);
    ShiftedExp(count, -2.0f, top, phi, phi + count);
    ShiftedExp(count, 2.0f, top, phi, phi);
    Scale(2 * count, 1 / Sum(2 * count, phi), phi);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// exp(+- 2 y_j) / sum_i (exp(2 y_i) + exp(-2 y_i)), each exponent less the largest of all.
void HedgehogFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    float* phi = a.phi + r * 2 * count;
    double top = 0.0, sum = 0.0;
    for (size_t j = 0; j < count; ++j) top = std::max(top, 2.0 * std::fabs(Project(a, x, j) + a.bias[j]));
    for (size_t i = 0; i < 2 * count; ++i) {
      const size_t j = i % count;
      sum += std::exp((i < count ? 2.0 : -2.0) * (Project(a, x, j) + a.bias[j]) - top);
    }
    for (size_t i = 0; i < 2 * count; ++i) {
      const size_t j = i % count;
      phi[i] = static_cast<float>(std::exp((i < count ? 2.0 : -2.0) * (Project(a, x, j) + a.bias[j]) - top) / sum);
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(Hedgehog)

}  // namespace tarn
#endif  // HWY_ONCE
