// Learned features (T2R; MATH 1.7): phi(x) = relu(Wx + bias).
#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/mlp_relu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void MlpReluFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
  for (size_t r = 0; r < a.rows; ++r) {
    float* phi = a.phi + r * count;
    Map2(count, phi, a.bias, phi, [](DF d, VF v, VF b) HWY_ATTR { return PositivePart(d, hn::Add(v, b)); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// relu(w_j x + b_j) (Kasai et al. 2021; MATH 1.7).
void MlpReluFeatures(const FeatureArgs& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < a.projections; ++j) {
      a.phi[r * a.projections + j] = static_cast<float>(Rectified(Project(a, a.x + r * a.head_dim, j) + a.bias[j]));
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(MlpRelu)

}  // namespace tarn
#endif  // HWY_ONCE
