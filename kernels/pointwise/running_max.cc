// The running maximum of log weights (MATH 1.2.3, 1.4). Equations: kernels/kernels.h.
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/running_max.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// m' = max(m, l), where an l that is NaN is passed over, and an m that is NaN stays.
HWY_INLINE float Larger(float m, float l) { return l > m ? l : m; }

// write = exp(l - m), where `write` holds m.
HWY_NOINLINE void WeighByMax(size_t tokens, const float* log_weight, float* write) {
  Map2(tokens, log_weight, write, write, [](DF d, VF l, VF m) HWY_ATTR { return Exp(d, hn::Sub(l, m)); });
}

// The maxima come one after the other, and wait in `write` for the exponentials.
void RunningMax(size_t tokens, bool first, const float* log_weight, float* m, float* log_decay, float* write) {
  float before = first ? log_weight[0] : *m;
  for (size_t t = 0; t < tokens; ++t) {
    write[t] = Larger(before, log_weight[t]);
    log_decay[t] = before - write[t];
    before = write[t];
  }
  *m = before;
  WeighByMax(tokens, log_weight, write);
}

void BlockMax(size_t tokens, bool first, const float* log_weight, float* m, float* carry, float* write) {
  const float before = first ? log_weight[0] : *m;
  float top = before;
  for (size_t t = 0; t < tokens; ++t) top = Larger(top, log_weight[t]);
  *m = top;
  *carry = std::exp(before - top);
  Fill(tokens, top, write);
  WeighByMax(tokens, log_weight, write);
}

void FillRunningMax(Kernels& table) {
  table.running_max = RunningMax;
  table.block_max = BlockMax;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillRunningMax);
void FillRunningMax(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillRunningMax)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
