// Per-target pieces that several kernels share: loops over a row with a masked tail, sums, the logistic function, softmax.
#if defined(TARN_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_VECTOR_INL_H_
#undef TARN_KERNELS_VECTOR_INL_H_
#else
#define TARN_KERNELS_VECTOR_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

constexpr size_t kLineBytes = 64;  // of a cache, where it is not known

// y[i] = f(x[i]). Beyond the end of the row f sees zeros, and what it makes of them is dropped. f captures scalars, not vectors,
// which SVE does not allow; the compiler moves their Set() out of the loop.
template <typename F>
HWY_INLINE void Map(size_t n, const float* x, float* y, const F& f) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) hn::StoreN(f(d, hn::LoadN(d, x + i, n - i)), d, y + i, n - i);
}

// y[i] = f(a[i], b[i]).
template <typename F>
HWY_INLINE void Map2(size_t n, const float* a, const float* b, float* y, const F& f) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n) hn::StoreN(f(d, hn::LoadN(d, a + i, n - i), hn::LoadN(d, b + i, n - i)), d, y + i, n - i);
}

// x[i] *= factor.
HWY_INLINE void Scale(size_t n, float factor, float* x) {
  Map(n, x, x, [factor](DF d, VF v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); });
}

// Four sums run side by side, so that an addition need not wait for the one before it.
HWY_INLINE float Dot(size_t n, const float* a, const float* b) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * lanes), hn::LoadU(d, b + i + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * lanes), hn::LoadU(d, b + i + 3 * lanes), s3);
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
  if (i < n) s1 = hn::MulAdd(hn::LoadN(d, a + i, n - i), hn::LoadN(d, b + i, n - i), s1);
  return hn::ReduceSum(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

HWY_INLINE float Sum(size_t n, const float* x) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF s0 = hn::Zero(d), s1 = s0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, hn::LoadU(d, x + i));
  if (i < n) s1 = hn::Add(s1, hn::LoadN(d, x + i, n - i));
  return hn::ReduceSum(d, hn::Add(s0, s1));
}

// max(x, 0); a NaN stays one, where maxima of floats differ between CPUs.
HWY_INLINE VF PositivePart(DF d, VF x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x); }

// y, but NaN where x is NaN: maxima and Highway's functions may make a number of it.
HWY_INLINE VF KeepNan(VF x, VF y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

HWY_INLINE VF Exp(DF d, VF x) { return KeepNan(x, hn::Exp(d, x)); }

// 1/(1 + e^-x), from e^-|x|, which cannot overflow; keeps its digits on both sides.
HWY_INLINE VF Sigmoid(DF d, VF x) {
  const VF one = hn::Set(d, 1.0f);
  const VF e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// log(sigmoid(x)) = min(x, 0) - log(1 + e^-|x|)
HWY_INLINE VF LogSigmoid(DF d, VF x) {
  const VF softplus = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x))));
  return KeepNan(x, hn::Sub(hn::Min(x, hn::Zero(d)), softplus));
}

// log(e^a + e^b) for finite a and b.
HWY_INLINE VF LogAddExp(DF d, VF a, VF b) {
  const VF difference = hn::Sub(a, b);
  const VF e = hn::Exp(d, hn::Neg(hn::Abs(difference)));
  return KeepNan(difference, hn::Add(hn::Max(a, b), hn::Log1p(d, e)));
}

// cap * tanh(x / cap), for a cap above 0.
HWY_INLINE VF Capped(DF d, VF x, float cap) {
  return KeepNan(x, hn::Mul(hn::Set(d, cap), hn::Tanh(d, hn::Div(x, hn::Set(d, cap)))));
}

// p <- exp(p - max(p)), in place, with the maximum over p and `top`; returns their sum. Where both are -inf, all are 0. A NaN stays
// one, and so the sum is one, whether the maximum of floats keeps it or not.
HWY_INLINE float ExpRow(size_t n, float* p, float& top) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF high = hn::Set(d, top);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) high = hn::Max(high, hn::LoadU(d, p + i));
  if (i < n) high = hn::Max(high, hn::LoadNOr(hn::Set(d, top), d, p + i, n - i));
  top = hn::ReduceMax(d, high);
  // -inf must not meet -inf: any finite number in its place gives exp(-inf) = 0.
  const float shift = top == -HUGE_VALF ? 0.0f : top;
  Map(n, p, p, [shift](DF dd, VF x) HWY_ATTR { return Exp(dd, hn::Sub(x, hn::Set(dd, shift))); });
  return Sum(n, p);
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_VECTOR_INL_H_
