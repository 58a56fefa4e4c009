// No feature map at all: phi(x) = x (GLA, RetNet, DeltaNet).
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/identity.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void Identity(const FeatureArgs& a) { std::memcpy(a.phi, a.x, a.rows * a.head_dim * sizeof(float)); }

void FillIdentity(Kernels& table) { table.features[static_cast<size_t>(FeatureMap::kIdentity)] = Identity; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillIdentity);
void FillIdentity(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillIdentity)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
