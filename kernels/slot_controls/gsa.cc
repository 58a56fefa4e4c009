// Control by GSA (MATH 0.1, 2.2): f = logsigmoid(x) / gate_normalizer, a slot keeps e^f and takes 1 - e^f.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/gsa.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// f of `count` slots from `slot` on. Lanes beyond them see an open gate, f = 0, so that they cannot make a chunk look too long.
HWY_INLINE VF LogDecay(const SlotControlArgs& a, size_t token, size_t slot, size_t count) {
  const DF d;
  const VF x = hn::LoadNOr(hn::Set(d, 1000.0f), d, a.logits + token * a.logit_stride + slot, count);
  return hn::Div(LogSigmoid(d, x), hn::Set(d, a.attributes.gate_normalizer));
}

// b = 1 - e^f.
HWY_INLINE VF Write(VF f) { return KeepNan(f, hn::Neg(hn::Expm1(DF(), f))); }

void GsaStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t j = 0; j < a.slots; j += lanes) {
    const size_t count = a.slots - j;
    const VF f = LogDecay(a, 0, j, count);
    hn::StoreN(Exp(d, f), d, decay + j, count);
    hn::StoreN(Write(f), d, write + j, count);
    hn::StoreN(hn::Zero(d), d, bias + j, count);
  }
}

// With F_t = f_0 + G_t:  carry_t = exp(f_0 + G_t), gain_t = exp(G_t - G_C/2), weight_i = (1 - e^{f_i}) exp(G_C/2 - G_i). The sums
// begin after the first token, whose f may dwarf the others. Two passes, as G_C comes last: the first leaves G in carry, 1 - e^f in
// weight.
HWY_INLINE bool ChunkOfSlots(const SlotControlArgs& a, size_t slot, float* carry, float* gain, float* weight, float* bias) {
  const DF d;
  const size_t count = a.slots - slot;
  const VF first = LogDecay(a, 0, slot, count);
  VF f = first, sum = hn::Zero(d);
  for (size_t t = 0; t < a.tokens; ++t) {
    if (t > 0) {
      f = LogDecay(a, t, slot, count);
      sum = hn::Add(sum, f);
    }
    hn::StoreN(sum, d, carry + t * a.slots + slot, count);
    hn::StoreN(Write(f), d, weight + t * a.slots + slot, count);
  }
  const auto fits = hn::And(hn::Ge(sum, hn::Set(d, -kSlotLogLimit)), hn::Eq(first, first));  // neither is NaN
  if (!hn::AllTrue(d, fits)) return false;
  const VF middle = hn::Mul(sum, hn::Set(d, 0.5f));
  for (size_t t = 0; t < a.tokens; ++t) {
    const size_t at = t * a.slots + slot;
    const VF g = hn::LoadN(d, carry + at, count);
    const VF grown = Exp(d, hn::Sub(g, middle));
    hn::StoreN(Exp(d, hn::Add(first, g)), d, carry + at, count);
    hn::StoreN(grown, d, gain + at, count);
    hn::StoreN(hn::Div(hn::LoadN(d, weight + at, count), grown), d, weight + at, count);
    hn::StoreN(hn::Zero(d), d, bias + at, count);
  }
  return true;
}

bool GsaChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const size_t lanes = hn::Lanes(DF());
  for (size_t j = 0; j < a.slots; j += lanes) {
    if (!ChunkOfSlots(a, j, carry, gain, weight, bias)) return false;
  }
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(Gsa)
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// GSA (MATH 0.1): f = logsigmoid(x) / gate_normalizer, with logsigmoid(x) = min(x, 0) - log(1 + e^-|x|).
double LogDecay(const SlotControlArgs& a, size_t token, size_t slot) {
  const double x = a.logits[token * a.logit_stride + slot];
  return (std::fmin(x, 0.0) - std::log1p(std::exp(-std::fabs(x)))) / static_cast<double>(a.attributes.gate_normalizer);
}

}  // namespace

// a = e^f, b = 1 - e^f.
void GsaStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double f = LogDecay(a, 0, j);
    decay[j] = static_cast<float>(std::exp(f));
    write[j] = static_cast<float>(-std::expm1(f));
    bias[j] = 0.0f;
  }
}

// With F_t = f_0 + .. + f_t: carry_t = exp(F_t), and gain_t weight_i = exp(F_t - F_i) (1 - e^{f_i}), split at R half-way between
// the first F and the last: gain_t = exp(F_t - R), weight_i = (1 - e^{f_i}) exp(R - F_i), neither above exp(kSlotLogLimit / 2).
bool GsaChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  for (size_t j = 0; j < a.slots; ++j) {
    const double first = LogDecay(a, 0, j);
    double last = first;
    for (size_t t = 1; t < a.tokens; ++t) last += LogDecay(a, t, j);
    if (!(first - last <= static_cast<double>(kSlotLogLimit))) return false;
    double sum = 0.0;
    for (size_t t = 0; t < a.tokens; ++t) {
      const double f = LogDecay(a, t, j);
      sum += f;
      const double from_middle = sum - (first + last) / 2;
      carry[t * a.slots + j] = static_cast<float>(std::exp(sum));
      gain[t * a.slots + j] = static_cast<float>(std::exp(from_middle));
      weight[t * a.slots + j] = static_cast<float>(-std::expm1(f) * std::exp(-from_middle));
      bias[t * a.slots + j] = 0.0f;
    }
  }
  return true;
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
