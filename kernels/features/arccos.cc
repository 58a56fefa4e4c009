// Features of the arc-cosine kernel of order 1 (RFA): phi(x) = sqrt(1/D) relu(Wx).
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/arccos.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void Arccos(const FeatureArgs& a) {
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
  const float scale = 1.0f / std::sqrt(static_cast<float>(count));
  Map(a.rows * count, a.phi, a.phi, [scale](DF d, VF v) HWY_ATTR { return hn::Mul(PositivePart(d, v), hn::Set(d, scale)); });
}

void FillArccos(Kernels& table) { table.features[static_cast<size_t>(FeatureMap::kArccos)] = Arccos; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillArccos);
void FillArccos(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillArccos)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
