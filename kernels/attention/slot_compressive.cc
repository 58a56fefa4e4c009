// Control by the mean pooling of the compressive transformer (MATH 1.8.7 a): token t joins slot floor(n t / max_len), which keeps
// the mean of its members.
#include <algorithm>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_compressive.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/slot_control-inl.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

HWY_INLINE size_t PooledSlot(const SlotControlArgs& a, size_t token) {
  return static_cast<size_t>(a.slots * (a.tokens_seen + token) / a.max_len);
}

void CompressiveStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  JoinSlot(a, PooledSlot(a, 0), decay, write, bias);
}

// With c_0 members before the chunk and c_t after token t: K~_t = (c_0 K~_0 + sum of its new members k_i) / c_t, so carry_t =
// c_0/c_t, gain_t = 1/c_t, weight_i = 1 for members. A token changes one slot: the row before it is copied for the others. Slots
// come in order, and all tokens of one stand side by side.
bool CompressiveChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const size_t n = a.slots;
  Fill(n, 1.0f, carry);
  for (size_t j = 0; j < n; ++j) gain[j] = a.mass[j] > 0.0f ? 1.0f / a.mass[j] : 0.0f;
  PutBias(a, a.mass, bias);
  Fill(a.tokens * n, 0.0f, weight);
  size_t slot = PooledSlot(a, 0);
  double before = static_cast<double>(a.mass[slot]), members = before;
  for (size_t t = 0; t < a.tokens; ++t) {
    const size_t row = t * n;
    if (t > 0) {
      std::copy_n(carry + row - n, n, carry + row);
      std::copy_n(gain + row - n, n, gain + row);
      std::copy_n(bias + row - n, n, bias + row);
    }
    if (PooledSlot(a, t) != slot) {
      slot = PooledSlot(a, t);
      before = members = static_cast<double>(a.mass[slot]);
    }
    members += 1.0;
    carry[row + slot] = static_cast<float>(before / members);
    gain[row + slot] = static_cast<float>(1.0 / members);
    weight[row + slot] = 1.0f;
    bias[row + slot] = 0.0f;
    a.mass[slot] = static_cast<float>(std::min(members, kSlotMostMembers));
  }
  return true;
}

void FillSlotCompressive(Kernels& table) {
  table.slot_control_step[static_cast<size_t>(SlotControl::kCompressiveMean)] = CompressiveStep;
  table.slot_control_chunk[static_cast<size_t>(SlotControl::kCompressiveMean)] = CompressiveChunk;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillSlotCompressive);
void FillSlotCompressive(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotCompressive)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
