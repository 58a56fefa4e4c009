// Control by assignment (ABC-RD, MATH 1.8.3): b_t = e_i with the slot i = index[t], and nothing is forgotten.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/assigned.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/slot_controls/mean-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The members only tell whether a slot is empty: that they stop at 2^24 in f32 does no harm.
HWY_NOINLINE void PutAssigned(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const size_t slot = static_cast<size_t>(a.index[token * a.index_stride]);
  Fill(a.slots, 0.0f, weight);
  weight[slot] = 1.0f;
  if (a.attributes.mask_empty) a.mass[slot] += 1.0f;
  PutBias(a, a.mass, bias);
}

void AssignedStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<PutAssigned>(a, decay, write, bias);
}

bool AssignedChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<PutAssigned>(a, carry, gain, weight, bias);
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(Assigned)
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// ABC-RD (MATH 1.8.3): b_t = e_{i_t}. The members only tell whether a slot is empty: that they stop at 2^24 in f32 does no harm.
void AssignedRow(const SlotControlArgs& a, size_t token, float* weight, float* bias) {
  const size_t slot = static_cast<size_t>(a.index[token * a.index_stride]);
  std::fill(weight, weight + a.slots, 0.0f);
  weight[slot] = 1.0f;
  if (a.attributes.mask_empty) a.mass[slot] += 1.0f;
  for (size_t j = 0; j < a.slots; ++j) bias[j] = EmptyBias(a, a.attributes.mask_empty && !(a.mass[j] > 0.0f));
}

}  // namespace

void AssignedStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  AdditiveStep<AssignedRow>(a, decay, write, bias);
}

bool AssignedChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  return AdditiveChunk<AssignedRow>(a, carry, gain, weight, bias);
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
