// Rectified features (Performer-ReLU; MATH 1.4): phi(x) = relu(ratio * Wx) + eps, or without W relu(ratio * x) + eps.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/relu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void ReluFeatures(const FeatureArgs& a) {
  const float* from = a.x;
  size_t count = a.head_dim;
  if (a.weight != nullptr) {
    count = a.projections;
    Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
    from = a.phi;
  }
  const float ratio = a.ratio, eps = a.eps;
  Map(a.rows * count, from, a.phi,
      [ratio, eps](DF d, VF v) HWY_ATTR { return hn::Add(PositivePart(d, hn::Mul(v, hn::Set(d, ratio))), hn::Set(d, eps)); });
}

void FillReluFeatures(Kernels& table) { table.features[static_cast<size_t>(FeatureMap::kRelu)] = ReluFeatures; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillReluFeatures);
void FillReluFeatures(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillReluFeatures)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
