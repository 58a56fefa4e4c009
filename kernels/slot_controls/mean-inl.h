// Per-target pieces that several controls of slot memory share.
#if defined(TARN_KERNELS_SLOT_CONTROLS_MEAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_SLOT_CONTROLS_MEAN_INL_H_
#undef TARN_KERNELS_SLOT_CONTROLS_MEAN_INL_H_
#else
#define TARN_KERNELS_SLOT_CONTROLS_MEAN_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/slot_limits.h"
#include "kernels/slot_memory.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// bias [n]: -inf where a masked slot has no members, else 0. Without a mask `members` is not read.
HWY_NOINLINE inline void PutBias(const SlotControlArgs& a, const float* members, float* bias) {
  if (!a.attributes.mask_empty) return Fill(a.slots, 0.0f, bias);
  Map(a.slots, members, bias,
      [](DF d, VF count) HWY_ATTR { return hn::IfThenElse(hn::Gt(count, hn::Zero(d)), hn::Zero(d), hn::Set(d, -HUGE_VALF)); });
}

// The token becomes a member of `slot`, which keeps the mean of its members; the other slots stay as they are.
HWY_NOINLINE inline void JoinSlot(const SlotControlArgs& a, size_t slot, float* decay, float* write, float* bias) {
  const JoinedMean joined = JoinMean(a.mass[slot]);
  Fill(a.slots, 1.0f, decay);
  Fill(a.slots, 0.0f, write);
  decay[slot] = joined.decay;
  write[slot] = joined.write;
  a.mass[slot] = joined.members;
  PutBias(a, a.mass, bias);
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_SLOT_CONTROLS_MEAN_INL_H_
