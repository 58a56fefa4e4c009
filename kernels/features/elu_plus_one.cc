// Features of the linear transformer (MATH 1.3): phi(x) = elu(x) + 1.
#include <cmath>

#include "kernels/features/features.h"

#if TARN_SIMD
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
void EluPlusOneFeatures(const FeatureArgs& a) {
  Map(a.rows * a.head_dim, a.x, a.phi, [](DF d, VF x) HWY_ATTR {
    const VF zero = hn::Zero(d);
    return hn::IfThenElse(hn::Gt(x, zero), hn::Add(x, hn::Set(d, 1.0f)), KeepNan(x, hn::Exp(d, hn::Min(x, zero))));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_SIMD

#if HWY_ONCE
namespace tarn {
namespace reference {

// x > 0 ? x + 1 : exp(x) (Katharopoulos et al. 2020, without the cancellation of (exp(x) - 1) + 1; MATH 1.3).
void EluPlusOneFeatures(const FeatureArgs& a) {
  for (size_t i = 0; i < a.rows * a.head_dim; ++i) {
    const double x = a.x[i];
    a.phi[i] = static_cast<float>(x > 0.0 ? x + 1.0 : std::exp(x));
  }
}

}  // namespace reference

TARN_FEATURE_MAP(EluPlusOne)

}  // namespace tarn
#endif  // HWY_ONCE
