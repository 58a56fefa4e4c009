// Products of two learned features (fla's elementwise product; MATH 1.7): phi(x)_i = (Wx + bias)_i (Wx + bias)_{i+M}, M = D/2.
#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// A block of rows and features at a time, so that the second factors fit the stack.
constexpr size_t kBlockRows = 8, kBlockFeatures = 64;

HWY_INLINE void Add(size_t n, const float* y, float* x) {
  Map2(n, x, y, x, [](DF, VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
}

void ProductFeatures(const FeatureArgs& a) {
  const size_t features = a.projections / 2;
  float second[kBlockRows * kBlockFeatures];
  for (size_t row = 0; row < a.rows; row += kBlockRows) {
    const size_t rows = HWY_MIN(kBlockRows, a.rows - row);
    const float* x = a.x + row * a.head_dim;
    for (size_t first = 0; first < features; first += kBlockFeatures) {
      const size_t count = HWY_MIN(kBlockFeatures, features - first);
      float* phi = a.phi + row * features + first;
      Gemm({rows, count, a.head_dim, x, a.head_dim, 1, a.weight + first, a.projections, false, phi, features});
      Gemm({rows, count, a.head_dim, x, a.head_dim, 1, a.weight + features + first, a.projections, false, second, count});
      for (size_t r = 0; r < rows; ++r) {
        float *y = phi + r * features, *z = second + r * count;
        Add(count, a.bias + first, y);
        Add(count, a.bias + features + first, z);
        Map2(count, y, z, y, [](DF, VF u, VF v) HWY_ATTR { return hn::Mul(u, v); });
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// (w_i x + b_i) (w_{i+M} x + b_{i+M})
void ProductFeatures(const FeatureArgs& a) {
  const size_t features = a.projections / 2;
  for (size_t r = 0; r < a.rows; ++r) {
    const float* x = a.x + r * a.head_dim;
    for (size_t i = 0; i < features; ++i) {
      const size_t j = features + i;
      a.phi[r * features + i] = static_cast<float>((Project(a, x, i) + a.bias[i]) * (Project(a, x, j) + a.bias[j]));
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(Product)

}  // namespace tarn
#endif  // HWY_ONCE
