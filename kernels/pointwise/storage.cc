// Rows of states and rings as they are stored: f16, or int8 with a scale per row.
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/storage.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/quantization.h"
#include "kernels/stored-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void F32ToF16(size_t n, const float* x, uint16_t* y) {
  const DF d;
  const hn::Rebind<uint16_t, DF> du;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(ToF16(hn::LoadU(d, x + i)), du, y + i);
  if (i < n) hn::StoreN(ToF16(hn::LoadN(d, x + i, n - i)), du, y + i, n - i);
}

// As integers: the bits of sizes are in the order of the sizes, and those of a NaN are above all of them, where a maximum of floats
// may forget it at the next element.
HWY_INLINE float LargestSize(size_t n, const float* x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const size_t lanes = hn::Lanes(d);
  auto high = hn::Zero(di);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) high = hn::Max(high, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  if (i < n) high = hn::Max(high, hn::BitCast(di, hn::Abs(hn::LoadN(d, x + i, n - i))));
  return hwy::BitCastScalar<float>(hn::ReduceMax(di, high));
}

void QuantizeI8(size_t n, const float* x, int8_t* q, float* scale) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const size_t lanes = hn::Lanes(d);
  const I8Row row = ChooseI8(LargestSize(n, x));
  *scale = row.scale;
  if (row.inverse == 0.0f) {
    std::memset(q, 0, n);
    return;
  }
  const VF inverse = hn::Set(d, row.inverse);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse))), d8, q + i);
  }
  if (i < n) hn::StoreN(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadN(d, x + i, n - i), inverse))), d8, q + i, n - i);
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
