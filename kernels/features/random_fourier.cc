// Random Fourier features (RFA, Theorem 1): phi(x) = sqrt(1/D) [sin Wx; cos Wx].
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/random_fourier.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Wx is formed where the sines will stand.
void RandomFourier(const FeatureArgs& a) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, 2 * count});
  const VF scale = hn::Set(d, 1.0f / std::sqrt(static_cast<float>(count)));
  VF s, c;
  for (size_t r = 0; r < a.rows; ++r) {
    float* sine = a.phi + r * 2 * count;
    float* cosine = sine + count;
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      hn::SinCos(d, hn::LoadU(d, sine + i), s, c);
      hn::StoreU(hn::Mul(s, scale), d, sine + i);
      hn::StoreU(hn::Mul(c, scale), d, cosine + i);
    }
    if (i < count) {
      hn::SinCos(d, hn::LoadN(d, sine + i, count - i), s, c);
      hn::StoreN(hn::Mul(s, scale), d, sine + i, count - i);
      hn::StoreN(hn::Mul(c, scale), d, cosine + i, count - i);
    }
  }
}

void FillRandomFourier(Kernels& table) { table.features[static_cast<size_t>(FeatureMap::kGaussian)] = RandomFourier; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillRandomFourier);
void FillRandomFourier(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillRandomFourier)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
