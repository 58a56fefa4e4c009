// Control by causal Linformer (MATH 1.8.2): b_t is row t of the schedule, and nothing is forgotten.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/linformer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The first token writes every slot, so none is masked.
HWY_NOINLINE void PutLinformer(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  std::copy_n(a.schedule + static_cast<size_t>(a.tokens_seen + token) * a.slots, a.slots, weight);
  Fill(a.slots, 0.0f, bias);
}

void LinformerStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<PutLinformer>(a, decay, write, bias);
}

bool LinformerChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<PutLinformer>(a, carry, gain, weight, bias);
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(Linformer)
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// Linformer (MATH 1.8.2): b_t is row t of the schedule; the first token writes every slot.
void LinformerRow(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const float* row = a.schedule + static_cast<size_t>(a.tokens_seen + token) * a.slots;
  std::copy(row, row + a.slots, weight);
  std::fill(bias, bias + a.slots, 0.0f);
}

}  // namespace

void LinformerStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<LinformerRow>(a, decay, write, bias);
}

bool LinformerChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<LinformerRow>(a, carry, gain, weight, bias);
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
