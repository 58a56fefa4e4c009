// One row of an embedding table, converted and scaled.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/embedding.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void ScaleF32(size_t n, const float* x, float scale, float* y) {
  Map(n, x, y, [scale](DF d, VF v) HWY_ATTR { return hn::Mul(v, hn::Set(d, scale)); });
}

void ScaleF16(size_t n, const uint16_t* x, float scale, float* y) {
  const DF d;
  const hn::Rebind<hwy::float16_t, DF> dh;
  const hn::Rebind<uint16_t, DF> du;
  const size_t lanes = hn::Lanes(d);
  const VF s = hn::Set(d, scale);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, x + i))), s), d, y + i);
  }
  if (i < n) hn::StoreN(hn::Mul(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadN(du, x + i, n - i))), s), d, y + i, n - i);
}

void ScaleI8(size_t n, const int8_t* x, float scale, float* y) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  const size_t lanes = hn::Lanes(d);
  const VF s = hn::Set(d, scale);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, x + i))), s), d, y + i);
  }
  if (i < n) hn::StoreN(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadN(d8, x + i, n - i))), s), d, y + i, n - i);
}

void FillEmbedding(Kernels& table) {
  table.scale_f32 = ScaleF32;
  table.scale_f16 = ScaleF16;
  table.scale_i8 = ScaleI8;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillEmbedding);
void FillEmbedding(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillEmbedding)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
