// Deterministic parameter-free projection (DPFP; MATH 1.5): products of the rectified halves of x with their neighbours.
#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/dpfp.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

HWY_INLINE void Multiply(size_t n, const float* a, const float* b, float* y) {
  Map2(n, a, b, y, [](DF, VF v, VF w) HWY_ATTR { return hn::Mul(v, w); });
}

// r = [relu(x); relu(-x)], or [relu(x); -relu(x)].
HWY_INLINE void Rectify(size_t n, const float* x, bool negate_second, float* r) {
  Map(n, x, r, [](DF d, VF v) HWY_ATTR { return PositivePart(d, v); });
  if (negate_second) {
    Map(n, x, r + n, [](DF d, VF v) HWY_ATTR { return hn::Neg(PositivePart(d, v)); });
  } else {
    Map(n, x, r + n, [](DF d, VF v) HWY_ATTR { return PositivePart(d, hn::Neg(v)); });
  }
}

// r is formed where the products of shift 1 will stand. These come last: going forward, each is stored where no later one reads,
// but for the first element, which the last one wraps around to.
void DpfpFeatures(const FeatureArgs& a) {
  const size_t count = 2 * a.head_dim;
  for (size_t row = 0; row < a.rows; ++row) {
    float* r = a.phi + row * count * a.nu;
    Rectify(a.head_dim, a.x + row * a.head_dim, a.negate_second, r);
    for (size_t j = 2; j <= a.nu; ++j) {
      const size_t shift = j % count;
      float* phi = r + (j - 1) * count;
      Multiply(count - shift, r, r + shift, phi);
      Multiply(shift, r + count - shift, r, phi + count - shift);
    }
    const float first = r[0];
    Multiply(count - 1, r, r + 1, r);
    r[count - 1] *= first;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// r_i r_{(i+j) mod 2d} at i + 2d(j-1), j = 1 .. nu (Schlag, Irie, Schmidhuber 2021; MATH 1.5).
void DpfpFeatures(const FeatureArgs& a) {
  const size_t count = 2 * a.head_dim;
  for (size_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.head_dim;
    const auto r = [&](size_t i) {
      if (i < a.head_dim) return Rectified(x[i]);
      return a.negate_second ? -Rectified(x[i - a.head_dim]) : Rectified(-x[i - a.head_dim]);
    };
    float* phi = a.phi + row * count * a.nu;
    for (size_t j = 1; j <= a.nu; ++j) {
      for (size_t i = 0; i < count; ++i) phi[i + count * (j - 1)] = static_cast<float>(r(i) * r((i + j) % count));
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(Dpfp)

}  // namespace tarn
#endif  // HWY_ONCE
