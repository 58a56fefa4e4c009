// Control by ABC-MLP (MATH 1.8.1): from activated logits to decays and writes.
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/slot_abc.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/slot_limits.h"
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
    return KeepNan(s, hn::Min(hn::Max(s, hn::Set(d, a.clamp_min)), hn::Set(d, a.clamp_max)));
  }

  // alpha of relu and sigmoid.
  HWY_INLINE VF Control(size_t token) const {
    const DF d;
    const VF s = Logits(token);
    return a.activation == SlotActivation::kRelu ? PositivePart(d, s) : Sigmoid(d, s);
  }

  HWY_INLINE VF Mass() const { return hn::LoadN(DF(), a.mass + slot, count); }
  HWY_INLINE void PutMass(VF v) const { hn::StoreN(v, DF(), a.mass + slot, count); }
  HWY_INLINE void Put(VF v, size_t token, float* to) const { hn::StoreN(v, DF(), to + token * a.slots + slot, count); }

  // 0, or -inf where a masked slot has no mass.
  HWY_INLINE VF Bias(VF mass) const {
    const DF d;
    if (!a.mask_empty) return hn::Zero(d);
    return hn::IfThenElse(hn::Le(mass, hn::Zero(d)), hn::Set(d, -HUGE_VALF), hn::Zero(d));
  }
};

// sum <= 0 ? otherwise : x / sum; of a sum that is NaN, NaN.
HWY_INLINE VF Share(VF x, VF sum, float otherwise) {
  const DF d;
  return hn::IfThenElse(hn::Le(sum, hn::Zero(d)), hn::Set(d, otherwise), hn::Div(x, sum));
}

HWY_INLINE void StepExp(const Slots& s, float* decay, float* write, float* bias) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const bool frozen = s.a.normalization == SlotNormalization::kFrozen;
  const VF logit = s.Logits(0);
  s.Put(hn::Zero(d), 0, bias);
  if (s.First()) {  // the log-sum-exp of nothing is -inf, which must not enter arithmetic
    s.Put(frozen ? one : hn::Zero(d), 0, decay);
    s.Put(KeepNan(logit, one), 0, write);
    s.PutMass(logit);
    return;
  }
  // sigmoid(s - lse), sigmoid(lse - s) and log(e^lse + e^s) from one exponential of -|s - lse|.
  const VF lse = s.Mass();
  const VF x = hn::Sub(logit, lse);
  const VF e = Exp(d, hn::Neg(hn::Abs(x)));
  const VF larger = hn::Div(one, hn::Add(one, e));
  const VF smaller = hn::Mul(e, larger);
  const auto falls = hn::Lt(x, hn::Zero(d));
  s.Put(frozen ? one : hn::IfThenElse(falls, larger, smaller), 0, decay);
  s.Put(hn::IfThenElse(falls, smaller, larger), 0, write);
  s.PutMass(KeepNan(x, hn::Add(hn::Max(logit, lse), hn::Log1p(d, e))));
}

HWY_INLINE void StepSum(const Slots& s, float* decay, float* write, float* bias) {
  const DF d;
  const VF past = s.Mass();
  const VF control = s.Control(0);
  const VF mass = hn::Add(past, control);
  s.Put(s.a.normalization == SlotNormalization::kFrozen ? hn::Set(d, 1.0f) : Share(past, mass, 1.0f), 0, decay);
  s.Put(Share(control, mass, 0.0f), 0, write);
  s.Put(s.Bias(mass), 0, bias);
  s.PutMass(mass);
}

// The largest logit of the chunk.
HWY_INLINE VF Top(const Slots& s) {
  VF top = s.Logits(0);
  for (size_t t = 1; t < s.a.tokens; ++t) top = hn::Max(top, s.Logits(t));
  return top;
}

// The log-sum-exp after the first token of the chunk.
HWY_INLINE VF FirstLogSumExp(const Slots& s) { return s.First() ? s.Logits(0) : LogAddExp(DF(), s.Mass(), s.Logits(0)); }

// Whether the factors of these slots can be had. With exp the log-sum-exp never falls, so the first token's gain is the largest;
// with the sums that of the first token that left mass. A NaN would reach the tokens before it, through zeros that a chunk's
// products multiply.
HWY_INLINE bool FactorsFit(const Slots& s) {
  const DF d;
  for (size_t t = 0; t < s.a.tokens; ++t) {
    if (!hn::AllFalse(d, hn::IsNaN(s.Logits(t)))) return false;
  }
  if (s.a.normalization == SlotNormalization::kFrozen) return true;
  if (s.a.activation == SlotActivation::kExp) {
    return hn::AllFalse(d, hn::Gt(hn::Sub(Top(s), FirstLogSumExp(s)), hn::Set(d, kSlotLogLimit)));
  }
  VF mass = s.Mass();
  VF largest = hn::Zero(d);
  for (size_t t = 0; t < s.a.tokens; ++t) {
    const VF control = s.Control(t);
    mass = hn::Add(mass, control);
    largest = hn::Max(largest, hn::Max(control, Share(hn::Set(d, 1.0f), mass, 0.0f)));
  }
  return hn::AllFalse(d, hn::Gt(largest, hn::Set(d, kSlotSumLimit)));
}

// carry, gain and weight relative to m, which lies half-way between the largest logit and the first log-sum-exp where that is below
// it, so that the logarithms of gain and weight share what has to be bridged: with r = max(largest logit, lse_0),
//   exp(lse_t - r) = exp(lse_0 - r) + exp(m - r) sum_i weight_i,
// so a token costs one exponential, and its logarithm is needed only at the end.
HWY_INLINE void ChunkExp(const Slots& s, float* carry, float* gain, float* weight, float* bias) {
  const DF d;
  const VF top = Top(s);
  const VF rise = hn::Max(hn::Sub(top, FirstLogSumExp(s)), hn::Zero(d));
  const VF m = hn::Sub(top, hn::Mul(rise, hn::Set(d, 0.5f)));
  const VF past = s.First() ? top : s.Mass();
  const VF r = hn::Max(top, past);
  const VF from_past = s.First() ? hn::Zero(d) : Exp(d, hn::Sub(past, r));
  const VF from_chunk = Exp(d, hn::Sub(m, r));
  VF sum = hn::Zero(d), total = sum;
  for (size_t t = 0; t < s.a.tokens; ++t) {
    const VF w = Exp(d, hn::Sub(s.Logits(t), m));
    sum = hn::Add(sum, w);
    total = hn::MulAdd(from_chunk, sum, from_past);
    const VF inverse = hn::Div(hn::Set(d, 1.0f), total);
    s.Put(hn::Mul(from_past, inverse), t, carry);
    s.Put(hn::Mul(from_chunk, inverse), t, gain);
    s.Put(w, t, weight);
    s.Put(hn::Zero(d), t, bias);
  }
  s.PutMass(KeepNan(total, hn::Add(r, hn::Log(d, total))));
}

// Frozen writes keep b_t = exp(s_t - lse_t), which no reference needs to bound.
HWY_INLINE void ChunkExpFrozen(const Slots& s, float* carry, float* gain, float* weight, float* bias) {
  const DF d;
  VF lse = s.Logits(0);
  for (size_t t = 0; t < s.a.tokens; ++t) {
    const VF logit = s.Logits(t);
    if (t > 0 || !s.First()) lse = LogAddExp(d, t == 0 ? s.Mass() : lse, logit);
    s.Put(hn::Set(d, 1.0f), t, carry);
    s.Put(hn::Set(d, 1.0f), t, gain);
    s.Put(Exp(d, hn::Sub(logit, lse)), t, weight);
    s.Put(hn::Zero(d), t, bias);
  }
  s.PutMass(lse);
}

HWY_INLINE void ChunkSum(const Slots& s, float* carry, float* gain, float* weight, float* bias) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const bool frozen = s.a.normalization == SlotNormalization::kFrozen;
  const VF past = s.Mass();
  VF mass = past;
  for (size_t t = 0; t < s.a.tokens; ++t) {
    const VF control = s.Control(t);
    mass = hn::Add(mass, control);
    s.Put(s.Bias(mass), t, bias);
    s.Put(frozen ? one : Share(past, mass, 1.0f), t, carry);
    s.Put(frozen ? one : Share(one, mass, 0.0f), t, gain);
    s.Put(frozen ? Share(control, mass, 0.0f) : control, t, weight);
  }
  s.PutMass(mass);
}

void AbcStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const size_t lanes = hn::Lanes(DF());
  for (size_t j = 0; j < a.slots; j += lanes) {
    const Slots slots{a, j, a.slots - j};
    if (a.activation == SlotActivation::kExp) {
      StepExp(slots, decay, write, bias);
    } else {
      StepSum(slots, decay, write, bias);
    }
  }
}

bool AbcChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const size_t lanes = hn::Lanes(DF());
  for (size_t j = 0; j < a.slots; j += lanes) {
    if (!FactorsFit(Slots{a, j, a.slots - j})) return false;
  }
  for (size_t j = 0; j < a.slots; j += lanes) {
    const Slots slots{a, j, a.slots - j};
    if (a.activation == SlotActivation::kExp && a.normalization == SlotNormalization::kFrozen) {
      ChunkExpFrozen(slots, carry, gain, weight, bias);
    } else if (a.activation == SlotActivation::kExp) {
      ChunkExp(slots, carry, gain, weight, bias);
    } else {
      ChunkSum(slots, carry, gain, weight, bias);
    }
  }
  return true;
}

// A block relative to the largest logit: no exponential exceeds 1, and their sum is at least 1.
HWY_INLINE void BlockExp(const Slots& s, float* top, float* carry, float* weight) {
  const DF d;
  const VF in_block = Top(s);
  VF m = in_block, past = hn::Zero(d);
  if (!s.First()) {
    const VF before = hn::LoadN(d, top + s.slot, s.count);
    m = hn::Max(before, in_block);
    past = hn::Mul(s.Mass(), Exp(d, hn::Sub(before, m)));
  }
  VF mass = past;
  for (size_t t = 0; t < s.a.tokens; ++t) {
    const VF e = Exp(d, hn::Sub(s.Logits(t), m));
    mass = hn::Add(mass, e);
    s.Put(e, t, weight);
  }
  const VF inverse = hn::Div(hn::Set(d, 1.0f), mass);
  for (size_t t = 0; t < s.a.tokens; ++t) {
    s.Put(hn::Mul(hn::LoadN(d, weight + t * s.a.slots + s.slot, s.count), inverse), t, weight);
  }
  s.Put(hn::Mul(past, inverse), 0, carry);
  s.PutMass(mass);
  hn::StoreN(m, d, top + s.slot, s.count);
}

HWY_INLINE void BlockSum(const Slots& s, float* carry, float* weight) {
  const DF d;
  const VF past = s.Mass();
  VF mass = past;
  for (size_t t = 0; t < s.a.tokens; ++t) {
    const VF control = s.Control(t);
    mass = hn::Add(mass, control);
    s.Put(control, t, weight);
  }
  for (size_t t = 0; t < s.a.tokens; ++t) {
    s.Put(Share(hn::LoadN(d, weight + t * s.a.slots + s.slot, s.count), mass, 0.0f), t, weight);
  }
  s.Put(Share(past, mass, 1.0f), 0, carry);
  s.PutMass(mass);
}

void AbcBlock(const SlotControlArgs& a, float* top, float* carry, float* weight) {
  const size_t lanes = hn::Lanes(DF());
  for (size_t j = 0; j < a.slots; j += lanes) {
    const Slots slots{a, j, a.slots - j};
    if (a.activation == SlotActivation::kExp) {
      BlockExp(slots, top, carry, weight);
    } else {
      BlockSum(slots, carry, weight);
    }
  }
}

void FillSlotAbc(Kernels& table) {
  table.slot_control_step[static_cast<size_t>(SlotControl::kAbcMlp)] = AbcStep;
  table.slot_control_chunk[static_cast<size_t>(SlotControl::kAbcMlp)] = AbcChunk;
  table.abc_block = AbcBlock;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillSlotAbc);
void FillSlotAbc(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillSlotAbc)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
