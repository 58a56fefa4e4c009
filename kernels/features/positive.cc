// Positive orthogonal random features (Performer, FAVOR+; MATH 1.4): phi_j = sqrt(1/D) exp(w_j.x - |x|^2/2 - log_weight).
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/positive.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

HWY_INLINE float Largest(size_t n, const float* x) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const VF lowest = hn::Set(d, -HUGE_VALF);
  VF high = lowest;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) high = hn::Max(high, hn::LoadU(d, x + i));
  if (i < n) high = hn::Max(high, hn::LoadNOr(lowest, d, x + i, n - i));
  return hn::ReduceMax(d, high);
}

// log_weight = max_j w_j.x - |x|^2/2, so |x|^2/2 cancels in phi, and with it the digits that a long x would cost.
void Positive(const FeatureArgs& a) {
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
  const float scale = 1.0f / std::sqrt(static_cast<float>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    float* phi = a.phi + r * count;
    const float top = Largest(count, phi);
    a.log_weight[r] = top - 0.5f * Dot(a.head_dim, x, x);
    Map(count, phi, phi,
        [scale, top](DF d, VF v) HWY_ATTR { return hn::Mul(Exp(d, hn::Sub(v, hn::Set(d, top))), hn::Set(d, scale)); });
  }
}

// phi = exp(-drop) phi + offset.
void DampFeatures(size_t rows, size_t m, const float* drop, float offset, float* phi) {
  for (size_t r = 0; r < rows; ++r) {
    const float factor = std::exp(-drop[r]);
    Map(m, phi + r * m, phi + r * m,
        [factor, offset](DF d, VF v) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, factor), hn::Set(d, offset)); });
  }
}

void FillPositive(Kernels& table) {
  table.features[static_cast<size_t>(FeatureMap::kPositive)] = Positive;
  table.damp_features = DampFeatures;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillPositive);
void FillPositive(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillPositive)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
