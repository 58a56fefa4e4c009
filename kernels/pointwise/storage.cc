// Rows of states and rings as they are stored: f16, or int8 with a scale per row.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/storage.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/reference/reference.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Values beyond f16's range stop at its ends; NaN compares false and stays NaN.
HWY_INLINE VF LimitToF16(DF d, VF x) {
  const VF most = hn::Set(d, 65504.0f);
  return hn::IfThenElse(hn::Gt(hn::Abs(x), most), hn::CopySign(most, x), x);
}

void F32ToF16(size_t n, const float* x, uint16_t* y) {
  const DF d;
  const hn::Rebind<hwy::float16_t, DF> dh;
  const hn::Rebind<uint16_t, DF> du;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, LimitToF16(d, hn::LoadU(d, x + i)))), du, y + i);
  }
  if (i < n) hn::StoreN(hn::BitCast(du, hn::DemoteTo(dh, LimitToF16(d, hn::LoadN(d, x + i, n - i)))), du, y + i, n - i);
}

HWY_INLINE float LargestSize(size_t n, const float* x) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF high = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) high = hn::Max(high, hn::Abs(hn::LoadU(d, x + i)));
  if (i < n) high = hn::Max(high, hn::Abs(hn::LoadN(d, x + i, n - i)));
  return hn::ReduceMax(d, high);
}

void QuantizeI8(size_t n, const float* x, int8_t* q, float* scale) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const size_t lanes = hn::Lanes(d);
  const reference::I8Row row = reference::ChooseI8(LargestSize(n, x));
  const VF inverse = hn::Set(d, row.inverse);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse))), d8, q + i);
  }
  if (i < n) hn::StoreN(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadN(d, x + i, n - i), inverse))), d8, q + i, n - i);
  *scale = row.scale;
}

void FillStorage(Kernels& table) {
  table.f32_to_f16 = F32ToF16;
  table.quantize_i8 = QuantizeI8;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillStorage);
void FillStorage(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillStorage)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
