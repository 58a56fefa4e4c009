// One row of an embedding table, converted and scaled.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/embedding.cc"
#include "core/dtype.h"
#include "core/planes.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/stored-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void ScaleF32(size_t n, const float* x, float scale, float* y) {
  Map(n, x, y, [scale](DF d, VF v) HWY_ATTR { return hn::Mul(v, hn::Set(d, scale)); });
}

void ScaleF16(size_t n, const uint16_t* x, float scale, float* y) {
  StoredToF32(n, x, hn::Zero(DF()), y);
  if (scale != 1.0f) Scale(n, scale, y);
}

void ScaleI8(size_t n, const int8_t* x, float scale, float* y) { StoredToF32(n, x, hn::Set(DF(), scale), y); }

// A block of kScaleBlock elements is 16 bytes: their even and odd elements take the same scale.
void ScaleI4(size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y) {
  const hn::CappedTag<float, kScaleBlock / 2> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n / 2; i += lanes) {
    const auto s = hn::Set(d, scale * hwy::F32FromBF16(hwy::bfloat16_t::FromBits(block_scales[2 * i / kScaleBlock])));
    const auto both = hn::PromoteTo(d32, hn::LoadU(d8, x + i));
    const auto even = hn::Sub(hn::And(both, hn::Set(d32, 15)), hn::Set(d32, 8));
    const auto odd = hn::Sub(hn::ShiftRight<4>(both), hn::Set(d32, 8));
    hn::StoreInterleaved2(hn::Mul(hn::ConvertTo(d, even), s), hn::Mul(hn::ConvertTo(d, odd), s), d, y + 2 * i);
  }
}

// Too few rows of a table are read to matter: element by element.
void ScalePlanes(unsigned bits, size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y) {
  for (size_t i = 0; i < n; ++i) {
    y[i] = scale * hwy::F32FromBF16(hwy::bfloat16_t::FromBits(block_scales[i / kScaleBlock])) *
           static_cast<float>(PlaneWeightAt(bits, x, n, i));
  }
}

void FillEmbedding(Kernels& table) {
  table.scale_f32 = ScaleF32;
  table.scale_f16 = ScaleF16;
  table.scale_i8 = ScaleI8;
  table.scale_i4 = ScaleI4;
  table.scale_planes = ScalePlanes;
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
