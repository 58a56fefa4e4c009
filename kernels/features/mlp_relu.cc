// Learned features (T2R; MATH 1.7): phi(x) = relu(Wx + bias).
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/mlp_relu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void MlpRelu(const FeatureArgs& a) {
  const size_t count = a.projections;
  Gemm({a.rows, count, a.head_dim, a.x, a.head_dim, 1, a.weight, count, false, a.phi, count});
  for (size_t r = 0; r < a.rows; ++r) {
    float* phi = a.phi + r * count;
    Map2(count, phi, a.bias, phi, [](DF d, VF v, VF b) HWY_ATTR { return PositivePart(d, hn::Add(v, b)); });
  }
}

void FillMlpRelu(Kernels& table) { table.features[static_cast<size_t>(FeatureMap::kMlpRelu)] = MlpRelu; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillMlpRelu);
void FillMlpRelu(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillMlpRelu)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
