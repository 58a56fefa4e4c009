// Random Fourier features (RFA, Theorem 1): phi(x) = sqrt(1/D) [sin Wx; cos Wx].
#include <cmath>

#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/gaussian.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Sine and cosine of x together. Errors below 2 u for a few turns; the reduction adds a few u at thousands. They are about 1e-6 up
// to |x| = 6e6 with fused multiply-add and up to 1e5 without; past 2^22 quarter turns results mean nothing and may leave [-1, 1].
// x is reduced to r in [-pi/4, pi/4], q quarter turns away; the polynomials are minimax there, for relative errors below
// those of f32.
HWY_INLINE void SinCos(DF d, VF x, VF& sine, VF& cosine) {
  const hn::RebindToSigned<DF> di;
  // A number of this size has no fraction: adding it rounds, and leaves q in the lowest bits.
  const VF magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const VF rounded = hn::MulAdd(x, hn::Set(d, 0.636619772f), magic);
  const auto q = hn::BitCast(di, rounded);
  const VF turns = hn::Sub(rounded, magic);
  // pi/2 in parts of which the first two have so few bits that q times them is exact, fused or not, for q < 2^12.
  VF r = hn::NegMulAdd(turns, hn::Set(d, 1.5703125f), x);
  r = hn::NegMulAdd(turns, hn::Set(d, 4.8387050628662109375e-4f), r);
  r = hn::MulAdd(turns, hn::Set(d, 4.371138829e-8f), r);
  const VF r2 = hn::Mul(r, r);
  VF s = hn::MulAdd(r2, hn::Set(d, -1.9516978e-4f), hn::Set(d, 8.332176e-3f));
  VF c = hn::MulAdd(r2, hn::Set(d, 2.443809e-5f), hn::Set(d, -1.3887364e-3f));
  s = hn::MulAdd(r2, s, hn::Set(d, -0.16666655f));
  c = hn::MulAdd(r2, c, hn::Set(d, 4.1666646e-2f));
  s = hn::MulAdd(hn::Mul(r, r2), s, r);
  c = hn::MulAdd(r2, hn::MulAdd(r2, c, hn::Set(d, -0.5f)), hn::Set(d, 1.0f));
  // An odd number of quarter turns exchanges them; the second bit of q is the sign of one, that of q + 1 of the other.
  const auto odd = hn::RebindMask(d, hn::TestBit(q, hn::Set(di, 1)));
  const auto sign = hn::SignBit(d);
  const VF sine_sign = hn::And(hn::BitCast(d, hn::ShiftLeft<30>(q)), sign);
  const VF cosine_sign = hn::And(hn::BitCast(d, hn::ShiftLeft<30>(hn::Add(q, hn::Set(di, 1)))), sign);
  sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

// Vectors that are in work at a time. A chain of so many steps leaves cores that run instructions in order idle for most of it.
// Cores elsewhere find the next vector by themselves, or have no registers for it.
constexpr size_t kVectorsTogether = HWY_ARCH_ARM_A64 ? 2 : 1;

// Wx is formed where the sines will stand.
void GaussianFeatures(const FeatureArgs& a) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, 2 * count});
  const VF scale = hn::Set(d, 1.0f / std::sqrt(static_cast<float>(count)));
  VF s0, c0;
  [[maybe_unused]] VF s1, c1;
  for (size_t r = 0; r < a.rows; ++r) {
    float* sine = a.phi + r * 2 * count;
    float* cosine = sine + count;
    size_t i = 0;
    for (; i + kVectorsTogether * lanes <= count; i += kVectorsTogether * lanes) {
      SinCos(d, hn::LoadU(d, sine + i), s0, c0);
      if constexpr (kVectorsTogether > 1) SinCos(d, hn::LoadU(d, sine + i + lanes), s1, c1);
      hn::StoreU(hn::Mul(s0, scale), d, sine + i);
      if constexpr (kVectorsTogether > 1) hn::StoreU(hn::Mul(s1, scale), d, sine + i + lanes);
      hn::StoreU(hn::Mul(c0, scale), d, cosine + i);
      if constexpr (kVectorsTogether > 1) hn::StoreU(hn::Mul(c1, scale), d, cosine + i + lanes);
    }
    for (; i < count; i += lanes) {
      const size_t left = count - i;
      SinCos(d, hn::LoadN(d, sine + i, left), s0, c0);
      hn::StoreN(hn::Mul(s0, scale), d, sine + i, left);
      hn::StoreN(hn::Mul(c0, scale), d, cosine + i, left);
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

// sqrt(1/D) [sin(w_1 x) .. sin(w_D x), cos(w_1 x) .. cos(w_D x)] (RFA, Theorem 1; MATH 1.2.1).
void GaussianFeatures(const FeatureArgs& a) {
  const size_t count = a.projections;
  const double scale = std::sqrt(1.0 / static_cast<double>(count));
  for (size_t r = 0; r < a.rows; ++r) {
    float* phi = a.phi + r * 2 * count;
    for (size_t j = 0; j < count; ++j) {
      const double angle = Project(a, a.x + r * a.head_dim, j);
      phi[j] = static_cast<float>(scale * std::sin(angle));
      phi[count + j] = static_cast<float>(scale * std::cos(angle));
    }
  }
}

}  // namespace reference

TARN_FEATURE_MAP(Gaussian)

}  // namespace tarn
#endif  // HWY_ONCE
