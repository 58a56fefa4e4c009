// Noncausal slots (MATH 0.2 "Non-causal", 1.8): their tokens are written in blocks, their queries read in blocks, as matrix
// products.
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_noncausal.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// K~ <- carry*K~ + weight^T K, V~ likewise; K~ is transposed, so its slots are columns.
void SlotWrite(const SlotWriteArgs& a) {
  const size_t c = a.tokens, n = a.slots, dim = a.key_dim, dv = a.value_dim;
  if (a.carry != nullptr) {
    const auto mul = [](DF, VF x, VF y) HWY_ATTR { return hn::Mul(x, y); };
    for (size_t x = 0; x < dim; ++x) Map2(n, a.keys + x * n, a.carry, a.keys + x * n, mul);
    for (size_t j = 0; j < n; ++j) Scale(dv, a.carry[j], a.values + j * dv);
  }
  Gemm({dim, n, c, a.k, 1, a.k_stride, a.weight, n, true, a.keys, n});
  Gemm({n, dv, c, a.weight, 1, n, a.v, a.v_stride, true, a.values, dv});
}

// logits <- softmax(scale*logits + bias) of one row; 0 where every slot is masked.
HWY_INLINE void SoftmaxRow(const SlotReadArgs& a, float* logits) {
  const float scale = a.scale;
  if (a.bias == nullptr) {
    Scale(a.slots, scale, logits);
  } else {
    Map2(a.slots, logits, a.bias, logits, [scale](DF d, VF x, VF bias) HWY_ATTR { return hn::MulAdd(x, hn::Set(d, scale), bias); });
  }
  float top = -HUGE_VALF;
  const float sum = ExpRow(a.slots, logits, top);
  Scale(a.slots, sum == 0.0f ? 0.0f : 1.0f / sum, logits);
}

// o = V~^T softmax(scale*K~ q + bias).
void SlotRead(const SlotReadArgs& a) {
  const size_t n = a.slots, dv = a.value_dim, row = a.queries * n;
  GemmOfQueries({a.rows, a.queries, n, a.key_dim, a.q, a.q_stride, a.key_dim, a.keys, a.scratch, row, n});
  for (size_t i = 0; i < a.rows * a.queries; ++i) SoftmaxRow(a, a.scratch + i * n);
  GemmOfQueries({a.rows, a.queries, dv, n, a.scratch, row, n, a.values, a.o, a.o_stride, dv});
}

void FillSlotNoncausal(Kernels& table) {
  table.slot_write = SlotWrite;
  table.slot_read = SlotRead;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillSlotNoncausal);
void FillSlotNoncausal(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotNoncausal)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
