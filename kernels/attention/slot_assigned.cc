// Control by assignment (ABC-RD, MATH 1.8.3): b_t = e_i with the slot i = index[t], and nothing is forgotten.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_assigned.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/slot_control-inl.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The members only tell whether a slot is empty: that they stop at 2^24 in f32 does no harm.
HWY_NOINLINE void PutAssigned(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const size_t slot = static_cast<size_t>(a.index[token * a.index_stride]);
  Fill(a.slots, 0.0f, weight);
  weight[slot] = 1.0f;
  if (a.mask_empty) a.mass[slot] += 1.0f;
  PutBias(a, a.mass, bias);
}

void AssignedStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  Fill(a.slots, 1.0f, decay);
  PutAssigned(a, 0, write, bias);
}

bool AssignedChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  Fill(a.tokens * a.slots, 1.0f, carry);
  Fill(a.tokens * a.slots, 1.0f, gain);
  for (size_t t = 0; t < a.tokens; ++t) PutAssigned(a, t, weight + t * a.slots, bias + t * a.slots);
  return true;
}

void FillSlotAssigned(Kernels& table) {
  table.slot_control_step[static_cast<size_t>(SlotControl::kAssigned)] = AssignedStep;
  table.slot_control_chunk[static_cast<size_t>(SlotControl::kAssigned)] = AssignedChunk;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillSlotAssigned);
void FillSlotAssigned(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotAssigned)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
