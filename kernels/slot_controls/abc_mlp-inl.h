// Per-target pieces of ABC-MLP: logits and masses of a vector of slots.
#if defined(TARN_KERNELS_SLOT_CONTROLS_ABC_MLP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_SLOT_CONTROLS_ABC_MLP_INL_H_
#undef TARN_KERNELS_SLOT_CONTROLS_ABC_MLP_INL_H_
#else
#define TARN_KERNELS_SLOT_CONTROLS_ABC_MLP_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/slot_memory.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// One vector of slots, `count` of them from `slot` on, through the tokens of a chunk.
struct Slots {
  const SlotControlArgs& a;
  size_t slot;
  size_t count;

  HWY_INLINE bool First() const { return a.tokens_seen == 0; }

  HWY_INLINE VF Logits(size_t token) const {
    const DF d;
    const VF s = hn::LoadN(d, a.logits + token * a.logit_stride + slot, count);
    return KeepNan(s, hn::Min(hn::Max(s, hn::Set(d, a.attributes.logit_min)), hn::Set(d, a.attributes.logit_max)));
  }

  // alpha of relu and sigmoid.
  HWY_INLINE VF Control(size_t token) const {
    const DF d;
    const VF s = Logits(token);
    return a.attributes.activation == SlotActivation::kRelu ? PositivePart(d, s) : Sigmoid(d, s);
  }

  HWY_INLINE VF Mass() const { return hn::LoadN(DF(), a.mass + slot, count); }
  HWY_INLINE void PutMass(VF v) const { hn::StoreN(v, DF(), a.mass + slot, count); }
  HWY_INLINE void Put(VF v, size_t token, float* to) const { hn::StoreN(v, DF(), to + token * a.slots + slot, count); }

  // 0, or -inf where a masked slot has no mass.
  HWY_INLINE VF Bias(VF mass) const {
    const DF d;
    if (!a.attributes.mask_empty) return hn::Zero(d);
    return hn::IfThenElse(hn::Le(mass, hn::Zero(d)), hn::Set(d, -HUGE_VALF), hn::Zero(d));
  }
};

// sum <= 0 ? otherwise : x / sum; of a sum that is NaN, NaN.
HWY_INLINE VF Share(VF x, VF sum, float otherwise) {
  const DF d;
  return hn::IfThenElse(hn::Le(sum, hn::Zero(d)), hn::Set(d, otherwise), hn::Div(x, sum));
}

// The largest logit of the chunk.
HWY_INLINE VF Top(const Slots& s) {
  VF top = s.Logits(0);
  for (size_t t = 1; t < s.a.tokens; ++t) top = hn::Max(top, s.Logits(t));
  return top;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_SLOT_CONTROLS_ABC_MLP_INL_H_
