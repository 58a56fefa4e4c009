// Control by causal Linformer (MATH 1.8.2): b_t is row t of the schedule, and nothing is forgotten.
#include <algorithm>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_linformer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The first token writes every slot, so none is masked.
HWY_NOINLINE void PutLinformer(const SlotControlArgs& a, size_t tokens, float* weight, float* bias) {
  std::copy_n(a.schedule + static_cast<size_t>(a.tokens_seen) * a.slots, tokens * a.slots, weight);
  Fill(tokens * a.slots, 0.0f, bias);
}

void LinformerStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  Fill(a.slots, 1.0f, decay);
  PutLinformer(a, 1, write, bias);
}

bool LinformerChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  Fill(a.tokens * a.slots, 1.0f, carry);
  Fill(a.tokens * a.slots, 1.0f, gain);
  PutLinformer(a, a.tokens, weight, bias);
  return true;
}

void FillSlotLinformer(Kernels& table) {
  table.slot_control_step[static_cast<size_t>(SlotControl::kLinformer)] = LinformerStep;
  table.slot_control_chunk[static_cast<size_t>(SlotControl::kLinformer)] = LinformerChunk;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillSlotLinformer);
void FillSlotLinformer(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotLinformer)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
