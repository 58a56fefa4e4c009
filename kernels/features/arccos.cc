// Features of the arc-cosine kernel of order 1 (RFA): phi(x) = sqrt(1/D) relu(Wx).
#include <cmath>

#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/arccos.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void ArccosFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
  const float scale = 1.0f / std::sqrt(static_cast<float>(count));
  Map(a.rows * count, a.phi, a.phi, [scale](DF d, VF v) HWY_ATTR { return hn::Mul(PositivePart(d, v), hn::Set(d, scale)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// sqrt(1/D) [relu(w_1 x) .. relu(w_D x)] (RFA, arc-cosine kernel of order 1; MATH 1.2.1).
void ArccosFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  const double scale = std::sqrt(1.0 / static_cast<double>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t j = 0; j < count; ++j) {
      a.phi[r * count + j] = static_cast<float>(scale * Rectified(Project(a, a.x + r * a.head_dim, j)));
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(Arccos)

}  // namespace tarn
#endif  // HWY_ONCE
