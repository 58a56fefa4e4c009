// Features of the linear transformer (MATH 1.3): phi(x) = elu(x) + 1.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/features/elu_plus_one.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// exp(x) itself for x <= 0: (exp(x) - 1) + 1 has no digits left where exp(x) is small. Cut at 0, it cannot overflow in the lanes
// whose result is x + 1.
void EluPlusOne(const FeatureArgs& a) {
  Map(a.rows * a.head_dim, a.x, a.phi, [](DF d, VF x) HWY_ATTR {
    const VF zero = hn::Zero(d);
    return hn::IfThenElse(hn::Gt(x, zero), hn::Add(x, hn::Set(d, 1.0f)), KeepNan(x, hn::Exp(d, hn::Min(x, zero))));
  });
}

void FillEluPlusOne(Kernels& table) { table.features[static_cast<size_t>(FeatureMap::kEluPlusOne)] = EluPlusOne; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillEluPlusOne);
void FillEluPlusOne(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillEluPlusOne)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
