// No feature map at all: phi(x) = x (GLA, RetNet, DeltaNet).
#include <algorithm>
#include <cstring>

#include "kernels/features/features.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/identity.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void IdentityFeatures(const FeatureArgs& a) { std::memcpy(a.phi, a.x, a.rows * a.head_dim * sizeof(float)); }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

void IdentityFeatures(const FeatureArgs& a) { std::copy_n(a.x, a.rows * a.head_dim, a.phi); }

}  // namespace reference

TARN_FEATURE_MAP(Identity)

}  // namespace tarn
#endif  // HWY_ONCE
