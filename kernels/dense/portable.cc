// Dense layers that read W where the model file has it, row by row and once for all rows of x, and the quantization of x.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/portable.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/reference/reference.h"
#include "kernels/vector-inl.h"

// The scalar target has no vectors of several types side by side: there the reference, whose loops are as good, stays.
#if HWY_TARGET != HWY_SCALAR
#include "kernels/dense/float-inl.h"
#include "kernels/dense/int4-inl.h"
#include "kernels/dense/int8-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Smallest and largest of a row and 0.
HWY_INLINE void Range(size_t n, const float* x, float& low, float& high) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF bottom = hn::Zero(d), top = bottom;
  for (size_t i = 0; i < n; i += lanes) {
    const VF v = hn::LoadN(d, x + i, n - i);  // zeros beyond the row are in the range anyway
    bottom = hn::Min(bottom, v);
    top = hn::Max(top, v);
  }
  low = hn::ReduceMin(d, bottom);
  high = hn::ReduceMax(d, top);
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint8_t, D>> Quantize(D d, hn::Vec<D> x, const reference::Qdu8Row& row) {
  const hn::Vec<D> moved =
      hn::Add(hn::Round(hn::Mul(x, hn::Set(d, row.inverse))), hn::Set(d, static_cast<float>(row.params.zero_point)));
  const hn::Vec<D> clamped = hn::Min(hn::Max(moved, hn::Zero(d)), hn::Set(d, 255.0f));
  return hn::DemoteTo(hn::Rebind<uint8_t, D>(), hn::NearestInt(clamped));
}

void QuantizeQdu8(size_t n, const float* x, bool split, uint8_t* q, Qdu8* params) {
  float low, high;
  Range(n, x, low, high);
  const reference::Qdu8Row row = reference::ChooseQdu8(low, high);
  *params = row.params;
  size_t i = 0;
  if (split) {
    const DF d;
    const hn::Rebind<uint8_t, DF> d8;
    const size_t lanes = hn::Lanes(d);
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
  } else {
    const DF d;
    const hn::Rebind<uint8_t, DF> d8;
    const size_t lanes = hn::Lanes(d);
    for (; i + lanes <= n; i += lanes) hn::StoreU(Quantize(d, hn::LoadU(d, x + i), row), d8, q + i);
    if (i < n) hn::StoreN(Quantize(d, hn::LoadN(d, x + i, n - i), row), d8, q + i, n - i);
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

void FillDense([[maybe_unused]] Kernels& table) {
#if HWY_TARGET != HWY_SCALAR
  table.dense_f32 = DenseFloat<float>;
  table.dense_f16 = DenseFloat<uint16_t>;
  table.quantize_qdu8 = QuantizeQdu8;
  table.dense_qdu8_qc8w = DenseQdu8Qc8w;
  table.dense_qdu8_qb4w = DenseQdu8Qb4w;
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
