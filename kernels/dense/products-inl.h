// Sums of products of bytes: rows of x, quantized to u8, with i8 weights. CPUs differ in what they multiply: x86 has u8 with i8,
// ARM only bytes of one sign (but for the newest cores), and so takes x as i8, moved down by 128.
#if defined(TARN_KERNELS_DENSE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_PRODUCTS_INL_H_
#undef TARN_KERNELS_DENSE_PRODUCTS_INL_H_
#else
#define TARN_KERNELS_DENSE_PRODUCTS_INL_H_
#endif

#include <cstdint>

#include "kernels/dense/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

using DI32 = hn::ScalableTag<int32_t>;
using DI8 = hn::Repartition<int8_t, DI32>;

#if HWY_ARCH_ARM
using DX8 = DI8;
constexpr int32_t kX8Moved = 128;
#else
using DX8 = hn::Repartition<uint8_t, DI32>;
constexpr int32_t kX8Moved = 0;
#endif

using VI32 = hn::Vec<DI32>;
using VI8 = hn::Vec<DI8>;
using VX8 = hn::Vec<DX8>;

// Elements of a row of x less kMoved, in the type that is multiplied. Behind the end of a row stands what meets weights of 0.
template <bool kWhole, int32_t kMoved = kX8Moved, class D>
HWY_INLINE hn::Vec<D> LoadX8(D d, const uint8_t* x, size_t left) {
  const hn::RebindToUnsigned<D> du;
  const auto q = LoadWholeOrPadded<kWhole>(du, x, left);
  if constexpr (kMoved == 0) {
    return hn::BitCast(d, q);
  } else {
    return hn::BitCast(d, hn::Xor(q, hn::Set(du, uint8_t{kMoved})));
  }
}

// sum + the products of each 4 bytes.
template <class V32, class V8, class VW>
HWY_INLINE V32 AddProducts(V8 x, VW w, V32 sum) {
  const hn::DFromV<V32> d;
#if HWY_ARCH_ARM && !HWY_HAVE_SCALABLE
  // smull, smull2 and two sadalp: NEON without dot products, where Highway's general way takes fifteen instructions.
  const hn::Repartition<int16_t, decltype(d)> d16;
  const auto low = hn::Mul(hn::PromoteLowerTo(d16, x), hn::PromoteLowerTo(d16, w));
  const auto high = hn::Mul(hn::PromoteUpperTo(d16, x), hn::PromoteUpperTo(d16, w));
  return hn::Add(hn::Add(sum, hn::SumsOf2(low)), hn::SumsOf2(high));
#else
  return hn::SumOfMulQuadAccumulate(d, x, w, sum);
#endif
}

// Whether there is AddPairs(): pairs of |x| times w with the sign of x fit i16, as 2 * 128 * 127 < 2^15. 128 is no byte, so w may
// not be -128, which no converter writes. 16 rows of 512 inputs take two thirds of the time of AddProducts() (Zen 3, AVX2).
constexpr bool kHavePairs = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4;

// sum + the products of each 4 bytes; w > -128.
template <class V32, class VW>
HWY_INLINE V32 AddPairs(VW x, VW w, V32 sum) {
  const hn::RepartitionToWide<hn::DFromV<VW>> d16;
  const hn::RebindToUnsigned<hn::DFromV<VW>> du;
  const auto pairs = hn::SatWidenMulPairwiseAdd(d16, hn::BitCast(du, hn::Abs(x)), hn::IfNegativeThenNegOrUndefIfZero(x, w));
  return hn::Add(sum, hn::WidenMulPairwiseAdd(hn::DFromV<V32>(), pairs, hn::Set(d16, int16_t{1})));
}

// sum + each 4 bytes.
template <class V32, class VW>
HWY_INLINE V32 AddBytes(VW w, V32 sum) {
#if HWY_ARCH_ARM && !HWY_HAVE_SCALABLE
  return hn::Add(sum, hn::SumsOf2(hn::SumsOf2(w)));
#else
  return AddProducts(hn::Set(hn::Repartition<hn::TFromD<DX8>, hn::DFromV<V32>>(), 1), w, sum);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_DENSE_PRODUCTS_INL_H_
