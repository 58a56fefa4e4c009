// Controls of slot memories: a file here is one of them. It is compiled twice: as the version for vectors (TARN_SIMD=1) and as the
// scalar reference (TARN_SIMD=0), which builds for one CPU without an operating system take alone. The list is in
// variants/slot_controls.h.
#ifndef TARN_KERNELS_SLOT_CONTROLS_SLOT_CONTROLS_H_
#define TARN_KERNELS_SLOT_CONTROLS_SLOT_CONTROLS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/slot_limits.h"
#include "kernels/slot_memory.h"

#ifndef TARN_SIMD
#define TARN_SIMD 1
#endif

namespace tarn {

// NAMEStepFor(target), NAMEChunkFor(target): the versions for one bit of HWY_TARGETS.
#define TARN_DECLARE(id, ...)                                                                      \
  namespace reference {                                                                            \
  void id##Step(const SlotControlArgs& a, float* decay, float* write, float* bias);                \
  bool id##Chunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias); \
  }                                                                                                \
  SlotControlStep id##StepFor(int64_t target);                                                     \
  SlotControlChunk id##ChunkFor(int64_t target);
#define TARN_IGNORE(...)
TARN_SLOT_CONTROLS(TARN_DECLARE, TARN_IGNORE)
#undef TARN_DECLARE
#undef TARN_IGNORE

#define TARN_SLOT_CONTROL(id)                                                                               \
  HWY_EXPORT(id##Step);                                                                                     \
  HWY_EXPORT(id##Chunk);                                                                                    \
  SlotControlStep id##StepFor(int64_t target) { return HWY_DISPATCH_TABLE(id##Step)[TargetIndex(target)]; } \
  SlotControlChunk id##ChunkFor(int64_t target) { return HWY_DISPATCH_TABLE(id##Chunk)[TargetIndex(target)]; }

// Controls that forget nothing: what a token writes is the weight of its chunk form, with carry = gain = 1. A row is one token:
// weight [n] and bias [n]; `token` counts from the first of the call.
using AdditiveRow = void (*)(const SlotControlArgs& a, size_t token, float* weight, float* bias);

template <AdditiveRow kRow>
void AdditiveStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  std::fill(decay, decay + a.slots, 1.0f);
  kRow(a, 0, write, bias);
}

template <AdditiveRow kRow>
bool AdditiveChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  std::fill(carry, carry + a.tokens * a.slots, 1.0f);
  std::fill(gain, gain + a.tokens * a.slots, 1.0f);
  for (size_t t = 0; t < a.tokens; ++t) kRow(a, t, weight + t * a.slots, bias + t * a.slots);
  return true;
}

// For the references, which count in f64.
namespace reference {

inline float EmptyBias(const SlotControlArgs& a, bool empty) { return a.attributes.mask_empty && empty ? -HUGE_VALF : 0.0f; }

// The token becomes a member of `slot`, which keeps the mean of its members.
inline void JoinSlot(const SlotControlArgs& a, uint64_t slot, float* decay, float* write, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const bool joins = j == slot;
    const JoinedMean joined = JoinMean(a.mass[j]);
    decay[j] = joins ? joined.decay : 1.0f;
    write[j] = joins ? joined.write : 0.0f;
    if (joins) a.mass[j] = joined.members;
    bias[j] = EmptyBias(a, !(a.mass[j] > 0.0f));
  }
}

}  // namespace reference
}  // namespace tarn

#endif  // TARN_KERNELS_SLOT_CONTROLS_SLOT_CONTROLS_H_
