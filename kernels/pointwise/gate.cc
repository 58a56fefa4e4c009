// The forget gate of RFA-GATE (MATH 1.2.4): for a logit a, sigmoid(a), sigmoid(-a) and -softplus(-a).
#include <algorithm>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/gate.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

void ForgetGate(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay) {
  const DF d;
  constexpr size_t kBlock = 64;  // logits that are brought together at a time
  float block[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t count = std::min(kBlock, n - first);
    for (size_t i = 0; i < count; ++i) block[i] = a[(first + i) * a_stride];
    const size_t lanes = hn::Lanes(d);
    for (size_t i = 0; i < count; i += lanes) {
      const size_t left = count - i;
      const VF x = hn::LoadN(d, block + i, left);
      if (decay != nullptr) hn::StoreN(Sigmoid(d, x), d, decay + first + i, left);
      if (write != nullptr) hn::StoreN(Sigmoid(d, hn::Neg(x)), d, write + first + i, left);
      if (log_decay != nullptr) {
        const VF softplus = hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x))));
        hn::StoreN(hn::Sub(hn::Min(x, hn::Zero(d)), softplus), d, log_decay + first + i, left);
      }
    }
  }
}

void FillGate(Kernels& table) { table.forget_gate = ForgetGate; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillGate);
void FillGate(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillGate)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
