// Sinusoidal and rotary positions.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/position.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The reduction below needs f64 lanes and a product that is not rounded before the subtraction.
#if HWY_HAVE_FLOAT64 && HWY_HAVE_INTEGER64 && HWY_NATIVE_FMA
#define TARN_VECTOR_SINUSOID 1
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;

// angle - 2 pi n with n = round(angle / 2 pi): Cody and Waite's subtraction of 2 pi in two parts. The first difference is exact up
// to one rounding of a number near pi, because the product is not rounded; the second part is 2^-52 of the first, so below 2^40 the
// result is off by less than 1e-15.
HWY_INLINE VD ReduceAngle(DD d, VD angle) {
  const VD turns = hn::Round(hn::Mul(angle, hn::Set(d, 0.15915494309189533577)));
  const VD near = hn::NegMulAdd(turns, hn::Set(d, 6.283185307179586232), angle);
  return hn::NegMulAdd(turns, hn::Set(d, 2.449293598294706414e-16), near);
}

void Sinusoid(size_t n, double position, const double* frequency, float* sine, float* cosine) {
  const DD d;
  const hn::Rebind<float, DD> df;
  const size_t lanes = hn::Lanes(d);
  const VD p = hn::Set(d, position);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = n - i < lanes ? n - i : lanes;
    const VD angle = ReduceAngle(d, hn::Mul(p, hn::LoadN(d, frequency + i, count)));
    VD s, c;
    hn::SinCos(d, angle, s, c);
    hn::StoreN(hn::DemoteTo(df, s), df, sine + i, count);
    hn::StoreN(hn::DemoteTo(df, c), df, cosine + i, count);
  }
}
#else
#define TARN_VECTOR_SINUSOID 0
#endif

// One vector of pairs (x1, x2), turned.
HWY_INLINE void Turn(VF cosine, VF sine, VF x1, VF x2, VF& y1, VF& y2) {
  y1 = hn::NegMulAdd(x2, sine, hn::Mul(x1, cosine));
  y2 = hn::MulAdd(x2, cosine, hn::Mul(x1, sine));
}

void Rope(size_t rows, size_t heads, size_t dim, const float* x, size_t x_stride, const float* angles, float* y, size_t y_stride) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const size_t half = dim / 2;
  VF y1, y2;
  for (size_t r = 0; r < rows; ++r) {
    const float* cosine = angles + r * dim;
    const float* sine = cosine + half;
    for (size_t h = 0; h < heads; ++h) {
      const float* from = x + r * x_stride + h * dim;
      float* to = y + r * y_stride + h * dim;
      size_t i = 0;
      for (; i + lanes <= half; i += lanes) {
        Turn(hn::LoadU(d, cosine + i), hn::LoadU(d, sine + i), hn::LoadU(d, from + i), hn::LoadU(d, from + half + i), y1, y2);
        hn::StoreU(y1, d, to + i);
        hn::StoreU(y2, d, to + half + i);
      }
      if (i < half) {
        const size_t left = half - i;
        Turn(hn::LoadN(d, cosine + i, left), hn::LoadN(d, sine + i, left), hn::LoadN(d, from + i, left),
             hn::LoadN(d, from + half + i, left), y1, y2);
        hn::StoreN(y1, d, to + i, left);
        hn::StoreN(y2, d, to + half + i, left);
      }
    }
  }
}

void FillPosition(Kernels& table) {
#if TARN_VECTOR_SINUSOID
  table.sinusoid = Sinusoid;
#endif
  table.rope = Rope;
}
#undef TARN_VECTOR_SINUSOID

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillPosition);
void FillPosition(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillPosition)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
