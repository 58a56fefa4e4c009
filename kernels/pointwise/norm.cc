// LayerNorm, RMSNorm, L2 and sum normalization, squared norms. Equations: kernels/kernels.h, sources:
// kernels/reference/pointwise.cc.
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// sum (x - mean)^2. Around the mean, not as E[x^2] - mean^2, which cancels.
HWY_INLINE float SumOfDeviations(size_t n, const float* x, float mean) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const VF m = hn::Set(d, mean);
  VF s0 = hn::Zero(d), s1 = s0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const VF a = hn::Sub(hn::LoadU(d, x + i), m);
    const VF b = hn::Sub(hn::LoadU(d, x + i + lanes), m);
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
  }
  for (; i + lanes <= n; i += lanes) {
    const VF a = hn::Sub(hn::LoadU(d, x + i), m);
    s0 = hn::MulAdd(a, a, s0);
  }
  if (i < n) {
    const VF b = hn::Sub(hn::LoadNOr(m, d, x + i, n - i), m);
    s1 = hn::MulAdd(b, b, s1);
  }
  return hn::ReduceSum(d, hn::Add(s0, s1));
}

void LayerNorm(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, const float* bias, float eps, float* y,
               size_t y_stride) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) {
    const float count = static_cast<float>(n);
    const float mean = Sum(n, x) / count;
    const float scale = 1.0f / std::sqrt(SumOfDeviations(n, x, mean) / count + eps);
    const VF m = hn::Set(d, mean);
    const VF s = hn::Set(d, scale);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const VF centred = hn::Mul(hn::Sub(hn::LoadU(d, x + i), m), s);
      hn::StoreU(hn::MulAdd(centred, hn::LoadU(d, weight + i), hn::LoadU(d, bias + i)), d, y + i);
    }
    if (i < n) {
      const size_t left = n - i;
      const VF centred = hn::Mul(hn::Sub(hn::LoadN(d, x + i, left), m), s);
      hn::StoreN(hn::MulAdd(centred, hn::LoadN(d, weight + i, left), hn::LoadN(d, bias + i, left)), d, y + i, left);
    }
  }
}

void RmsNorm(size_t rows, size_t n, const float* x, size_t x_stride, const float* weight, float eps, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r, x += x_stride, y += y_stride) {
    const float mean_square = Dot(n, x, x) / static_cast<float>(n);
    const float scale = 1.0f / std::sqrt(mean_square + eps);
    Map2(n, x, weight, y, [scale](DF d, VF v, VF w) HWY_ATTR { return hn::Mul(hn::Mul(v, hn::Set(d, scale)), w); });
  }
}

void L2Normalize(size_t rows, size_t n, const float* x, size_t x_stride, float scale, float eps, bool inside, float* y) {
  for (size_t r = 0; r < rows; ++r, x += x_stride, y += n) {
    const float squares = Dot(n, x, x);
    const float norm = inside ? std::sqrt(squares + eps) : std::sqrt(squares) + eps;
    const float factor = scale / norm;
    Map(n, x, y, [factor](DF d, VF v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); });
  }
}

// A sum of 0 divides nothing: that leaves a row of zeros as it is. A division, because the inverse of a sum can overflow.
void SumNormalize(size_t rows, size_t m, float eps, float* phi) {
  for (size_t r = 0; r < rows; ++r, phi += m) {
    const float total = Sum(m, phi) + eps;
    if (total != 0.0f) Map(m, phi, phi, [total](DF d, VF v) HWY_ATTR { return hn::Div(v, hn::Set(d, total)); });
  }
}

// sum (a*b)^2.
HWY_INLINE float SumOfSquaredProducts(size_t n, const float* a, const float* b) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF s0 = hn::Zero(d), s1 = s0;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF product = hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    s0 = hn::MulAdd(product, product, s0);
  }
  if (i < n) {
    const VF product = hn::Mul(hn::LoadN(d, a + i, n - i), hn::LoadN(d, b + i, n - i));
    s1 = hn::MulAdd(product, product, s1);
  }
  return hn::ReduceSum(d, hn::Add(s0, s1));
}

void HalfSquaredNorm(size_t rows, size_t n, const float* x, const float* sigma, float* log_weight) {
  for (size_t r = 0; r < rows; ++r, x += n) {
    log_weight[r] = 0.5f * (sigma == nullptr ? Dot(n, x, x) : SumOfSquaredProducts(n, x, sigma));
  }
}

void FillNorms(Kernels& table) {
  table.layer_norm = LayerNorm;
  table.rms_norm = RmsNorm;
  table.l2_normalize = L2Normalize;
  table.sum_normalize = SumNormalize;
  table.half_squared_norm = HalfSquaredNorm;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillNorms);
void FillNorms(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillNorms)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
