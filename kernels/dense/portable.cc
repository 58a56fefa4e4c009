// Dense layers that read W where the model file has it, row by row and once for all rows of x, and the quantization of x.
#include <cmath>
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/portable.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/quantization.h"
#include "kernels/vector-inl.h"

// The scalar target has no vectors of several types side by side: there the reference, whose loops are as good, stays.
#if HWY_TARGET != HWY_SCALAR
#include "kernels/dense/float-inl.h"
#include "kernels/dense/int4-inl.h"
#include "kernels/dense/int8-inl.h"
#include "kernels/dense/planes-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

HWY_INLINE void AddToRange(VF x, VF& bottom, VF& top, VF& poison) {
  bottom = hn::Min(bottom, x);
  top = hn::Max(top, x);
  poison = hn::MulAdd(x, hn::Zero(DF()), poison);
}

// Smallest and largest of a row and 0; NaN where an element is no finite number, which Min and Max may forget.
HWY_INLINE Qdu8Row ChooseRow(size_t n, const float* x) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF bottom = hn::Zero(d), top = bottom, poison = bottom;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) AddToRange(hn::LoadU(d, x + i), bottom, top, poison);
  if (i < n) AddToRange(hn::LoadN(d, x + i, n - i), bottom, top, poison);  // 0 is in the range anyway
  const float nan_or_0 = hn::ReduceSum(d, poison);
  return ChooseQdu8(hn::ReduceMin(d, bottom) + nan_or_0, hn::ReduceMax(d, top) + nan_or_0);
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint8_t, D>> Quantize(D d, hn::Vec<D> x, const Qdu8Row& row) {
  const hn::Vec<D> moved =
      hn::Add(hn::Round(hn::Mul(x, hn::Set(d, row.inverse))), hn::Set(d, static_cast<float>(row.params.zero_point)));
  const hn::Vec<D> clamped = hn::Min(hn::Max(moved, hn::Zero(d)), hn::Set(d, 255.0f));
  return hn::DemoteTo(hn::Rebind<uint8_t, D>(), hn::NearestInt(clamped));
}

// Four vectors at a time: to integers and, with saturation at both ends of u8, to bytes, in the order of x.
HWY_INLINE hn::Vec<hn::Repartition<uint8_t, DF>> QuantizeFour(const float* x, const Qdu8Row& row) {
  const DF d;
  const hn::Repartition<int16_t, DF> d16;
  const size_t lanes = hn::Lanes(d);
  const VF inverse = hn::Set(d, row.inverse);
  const auto zero_point = hn::Set(d16, static_cast<int16_t>(row.params.zero_point));
  const auto low = hn::OrderedDemote2To(d16, hn::NearestInt(hn::Mul(hn::LoadU(d, x), inverse)),
                                        hn::NearestInt(hn::Mul(hn::LoadU(d, x + lanes), inverse)));
  const auto high = hn::OrderedDemote2To(d16, hn::NearestInt(hn::Mul(hn::LoadU(d, x + 2 * lanes), inverse)),
                                         hn::NearestInt(hn::Mul(hn::LoadU(d, x + 3 * lanes), inverse)));
  return hn::OrderedDemote2To(hn::Repartition<uint8_t, DF>(), hn::SaturatedAdd(low, zero_point),
                              hn::SaturatedAdd(high, zero_point));
}

// The bits of `flip` are inverted in every element.
template <uint8_t flip>
HWY_INLINE void QuantizeRow(size_t n, const float* x, const Qdu8Row& row, uint8_t* q) {
  if (std::isnan(row.params.scale)) {
    std::memset(q, flip, n);
    return;
  }
  const DF d;
  const hn::Rebind<uint8_t, DF> d8;
  const size_t lanes = hn::Lanes(d);
  const auto bits = hn::Set(d8, flip);
  const hn::Repartition<uint8_t, DF> d_four;
  const auto four_bits = hn::Set(d_four, flip);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) hn::StoreU(hn::Xor(QuantizeFour(x + i, row), four_bits), d_four, q + i);
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Xor(Quantize(d, hn::LoadU(d, x + i), row), bits), d8, q + i);
  if (i < n) hn::StoreN(hn::Xor(Quantize(d, hn::LoadN(d, x + i, n - i), row), bits), d8, q + i, n - i);
}

HWY_INLINE void QuantizeTwoParts(size_t n, const float* x, const Qdu8Row& row, uint8_t* q) {
  const DF d;
  const hn::Rebind<uint8_t, DF> d8;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    VF even, odd;
    hn::LoadInterleaved2(d, x + i, even, odd);
    hn::StoreU(Quantize(d, even, row), d8, q + i / 2);
    hn::StoreU(Quantize(d, odd, row), d8, q + n / 2 + i / 2);
  }
  const hn::CappedTag<float, 1> d1;
  for (; i < n; ++i) {
    hn::StoreU(Quantize(d1, hn::LoadU(d1, x + i), row), hn::Rebind<uint8_t, decltype(d1)>(), q + i % 2 * (n / 2) + i / 2);
  }
}

HWY_INLINE void QuantizeEightParts(size_t n, const float* x, const Qdu8Row& row, uint8_t* q) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  for (size_t i = 0; i < n; i += 8) {
    uint8_t eight[8];
    for (size_t k = 0; k < 8; k += hn::Lanes(d)) hn::StoreU(Quantize(d, hn::LoadU(d, x + i + k), row), d8, eight + k);
    for (size_t k = 0; k < 8; ++k) q[k * (n / 8) + i / 8] = eight[k];
  }
}

void QuantizeQdu8(size_t n, const float* x, size_t parts, uint8_t* q, Qdu8* params) {
  const Qdu8Row row = ChooseRow(n, x);
  *params = row.params;
  if (parts == 1 || std::isnan(row.params.scale)) return QuantizeRow<0>(n, x, row, q);
  parts == 2 ? QuantizeTwoParts(n, x, row, q) : QuantizeEightParts(n, x, row, q);
}

void QuantizeQd8(size_t n, const float* x, int8_t* q, Qdu8* params) {
  const Qdu8Row row = ChooseRow(n, x);
  *params = row.params;
  QuantizeRow<128>(n, x, row, reinterpret_cast<uint8_t*>(q));
}

#endif  // HWY_TARGET != HWY_SCALAR

void FillDense([[maybe_unused]] Kernels& table) {
#if HWY_TARGET != HWY_SCALAR
  table.dense_f32 = DenseFloat<float>;
  table.dense_f16 = DenseFloat<uint16_t>;
  table.quantize_qdu8 = QuantizeQdu8;
  table.quantize_qd8 = QuantizeQd8;
  table.dense_qdu8_qc8w = DenseQdu8Qc8w;
  table.dense_qdu8_qb4w = DenseQdu8Qb4w;
  table.dense_qdu8_planes = DenseQdu8Planes;
  table.pack_panels = PackPanels;
  table.dense_qdu8_panel = DenseQdu8Panel;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillDense);
void FillDense(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillDense)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
