// Rectified features (Performer-ReLU; MATH 1.4): phi(x) = relu(ratio * Wx) + eps, or without W relu(ratio * x) + eps.
#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/relu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void ReluFeatures(const FeatureArgs& a) {
  const float* from = a.x;
  size_t count = a.head_dim;
  if (a.weight != nullptr) {
    count = a.projections;
    Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
    from = a.phi;
  }
  const float ratio = a.ratio, eps = a.eps;
  Map(a.rows * count, from, a.phi,
      [ratio, eps](DF d, VF v) HWY_ATTR { return hn::Add(PositivePart(d, hn::Mul(v, hn::Set(d, ratio))), hn::Set(d, eps)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// relu(ratio * w_j x) + eps; without a projection relu(ratio * x_j) + eps (ibid., generalized attention; MATH 1.4).
void ReluFeatures(const FeatureArgs& a) {
  const bool projects = a.weight != nullptr;
  const size_t count = projects ? a.projections : a.head_dim;
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    for (size_t j = 0; j < count; ++j) {
      const double l = projects ? Project(a, x, j) : static_cast<double>(x[j]);
      a.phi[r * count + j] = static_cast<float>(Rectified(static_cast<double>(a.ratio) * l) + static_cast<double>(a.eps));
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(Relu)

}  // namespace tarn
#endif  // HWY_ONCE
