// Positive orthogonal random features (Performer, FAVOR+; MATH 1.4): phi_j = sqrt(1/D) exp(w_j.x - |x|^2/2 - log_weight).
#include <cmath>

#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/positive.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
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
void PositiveFeatures(const FeatureArgs& a) {
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

void FillDamping(Kernels& table) { table.damp_features = DampFeatures; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// sqrt(1/D) exp(l_j - max_i l_i), l_j = w_j x - |x|^2/2 (Choromanski et al. 2021, FAVOR+; MATH 1.4).
void PositiveFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  const double scale = std::sqrt(1.0 / static_cast<double>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    double top = -HUGE_VAL;
    for (size_t j = 0; j < count; ++j) top = std::fmax(top, Project(a, x, j));
    for (size_t j = 0; j < count; ++j) a.phi[r * count + j] = static_cast<float>(scale * std::exp(Project(a, x, j) - top));
    double squares = 0.0;
    for (size_t i = 0; i < a.head_dim; ++i) squares += static_cast<double>(x[i]) * x[i];
    a.log_weight[r] = static_cast<float>(top - 0.5 * squares);
  }
}

// FAVOR+ as published adds an epsilon to each exponential, which then no longer cancels: sqrt(1/D) (exp(l_j - c) + eps) with c that
// of the publication is phi_j exp(max_i l_i - c) + sqrt(1/D) eps (MATH 1.4).
void DampFeatures(size_t rows, size_t m, const float* drop, float offset, float* phi) {
  for (size_t r = 0; r < rows; ++r, phi += m) {
    const double factor = std::exp(-static_cast<double>(drop[r]));
    for (size_t j = 0; j < m; ++j) phi[j] = static_cast<float>(factor * phi[j] + static_cast<double>(offset));
  }
}

}  // namespace reference

#if TARN_SIMD
HWY_EXPORT(FillDamping);
void FillDamping(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillDamping)[TargetIndex(target)](table); }
#endif
TARN_FEATURE_MAP(Positive)

}  // namespace tarn
#endif  // HWY_ONCE
