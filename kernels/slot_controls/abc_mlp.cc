// Control by ABC-MLP (MATH 1.8.1): from activated logits to decays and writes.
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/abc_mlp.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/slot_controls/abc_mlp-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

HWY_INLINE void StepExp(const Slots& s, float* decay, float* write, float* bias) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const bool frozen = s.a.attributes.normalization == SlotNormalization::kFrozen;
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
  s.Put(s.a.attributes.normalization == SlotNormalization::kFrozen ? hn::Set(d, 1.0f) : Share(past, mass, 1.0f), 0, decay);
  s.Put(Share(control, mass, 0.0f), 0, write);
  s.Put(s.Bias(mass), 0, bias);
  s.PutMass(mass);
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
  if (s.a.attributes.normalization == SlotNormalization::kFrozen) return true;
  if (s.a.attributes.activation == SlotActivation::kExp) {
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
  const bool frozen = s.a.attributes.normalization == SlotNormalization::kFrozen;
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

void AbcMlpStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const size_t lanes = hn::Lanes(DF());
  for (size_t j = 0; j < a.slots; j += lanes) {
    const Slots slots{a, j, a.slots - j};
    if (a.attributes.activation == SlotActivation::kExp) {
      StepExp(slots, decay, write, bias);
    } else {
      StepSum(slots, decay, write, bias);
    }
  }
}

bool AbcMlpChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const size_t lanes = hn::Lanes(DF());
  for (size_t j = 0; j < a.slots; j += lanes) {
    if (!FactorsFit(Slots{a, j, a.slots - j})) return false;
  }
  for (size_t j = 0; j < a.slots; j += lanes) {
    const Slots slots{a, j, a.slots - j};
    if (a.attributes.activation == SlotActivation::kExp && a.attributes.normalization == SlotNormalization::kFrozen) {
      ChunkExpFrozen(slots, carry, gain, weight, bias);
    } else if (a.attributes.activation == SlotActivation::kExp) {
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
    if (a.attributes.activation == SlotActivation::kExp) {
      BlockExp(slots, top, carry, weight);
    } else {
      BlockSum(slots, carry, weight);
    }
  }
}

void FillAbcBlock(Kernels& table) { table.abc_block = AbcBlock; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(AbcMlp)

HWY_EXPORT(FillAbcBlock);
void FillAbcBlock(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillAbcBlock)[TargetIndex(target)](table); }
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

bool First(const SlotControlArgs& a) { return a.tokens_seen == 0; }

double Logit(const SlotControlArgs& a, size_t token, size_t slot) {
  const double s = a.logits[token * a.logit_stride + slot];
  if (std::isnan(s)) return s;
  return std::fmin(std::fmax(s, static_cast<double>(a.attributes.logit_min)), static_cast<double>(a.attributes.logit_max));
}

// alpha of relu and sigmoid. Rounded to f32, as its sum is kept: a sigmoid below f32's range leaves no mass.
double Control(const SlotControlArgs& a, size_t token, size_t slot) {
  const double s = Logit(a, token, slot);
  return static_cast<double>(static_cast<float>(a.attributes.activation == SlotActivation::kSigmoid ? Sigmoid(s)
                                                : s < 0.0                                           ? 0.0
                                                                                                    : s));
}

double Bias(const SlotControlArgs& a, double mass) { return a.attributes.mask_empty && mass <= 0.0 ? -HUGE_VAL : 0.0; }

// log(exp(lse) of the past + sum over tokens first..last of exp(s)).
double LogSumExp(const SlotControlArgs& a, size_t slot, size_t last) {
  double top = First(a) ? Logit(a, 0, slot) : static_cast<double>(a.mass[slot]);
  for (size_t t = 0; t <= last; ++t) top = std::fmax(top, Logit(a, t, slot));
  double sum = First(a) ? 0.0 : std::exp(a.mass[slot] - top);
  for (size_t t = 0; t <= last; ++t) sum += std::exp(Logit(a, t, slot) - top);
  return top + std::log(sum);
}

double ControlSum(const SlotControlArgs& a, size_t slot, size_t last) {
  double sum = a.mass[slot];
  for (size_t t = 0; t <= last; ++t) sum += Control(a, t, slot);
  return sum;
}

// The factors of one slot; false where they leave f32's range.
bool ExpFactors(const SlotControlArgs& a, size_t slot, float* carry, float* gain, float* weight) {
  double top = Logit(a, 0, slot);
  for (size_t t = 1; t < a.tokens; ++t) top = std::fmax(top, Logit(a, t, slot));
  const bool frozen = a.attributes.normalization == SlotNormalization::kFrozen;
  const double rise = std::fmax(top - LogSumExp(a, slot, 0), 0.0);
  if (!frozen && rise > static_cast<double>(kSlotLogLimit)) return false;
  const double m = top - rise / 2;
  for (size_t t = 0; t < a.tokens; ++t) {
    const double lse = LogSumExp(a, slot, t);
    const double kept = First(a) ? 0.0 : std::exp(a.mass[slot] - lse);
    carry[t * a.slots + slot] = static_cast<float>(frozen ? 1.0 : kept);
    gain[t * a.slots + slot] = static_cast<float>(frozen ? 1.0 : std::exp(m - lse));
    weight[t * a.slots + slot] = static_cast<float>(std::exp(Logit(a, t, slot) - (frozen ? lse : m)));
  }
  return true;
}

bool SumFactors(const SlotControlArgs& a, size_t slot, float* carry, float* gain, float* weight) {
  const bool frozen = a.attributes.normalization == SlotNormalization::kFrozen;
  const double limit = kSlotSumLimit;
  for (size_t t = 0; t < a.tokens; ++t) {
    const double alpha = Control(a, t, slot);
    const double sum = ControlSum(a, slot, t);
    const double past = a.mass[slot];
    const double inverse = sum <= 0.0 ? 0.0 : 1.0 / sum;
    if (!frozen && (inverse > limit || alpha > limit)) return false;
    carry[t * a.slots + slot] = static_cast<float>(frozen || sum <= 0.0 ? 1.0 : past * inverse);
    gain[t * a.slots + slot] = static_cast<float>(frozen ? 1.0 : inverse);
    weight[t * a.slots + slot] = static_cast<float>(frozen ? alpha * inverse : alpha);
  }
  return true;
}

}  // namespace

// exp: lse' = logaddexp(lse, s), b = sigmoid(s - lse), a = sigmoid(lse - s); the first token writes with b = 1.
// relu, sigmoid: z' = z + alpha, b = alpha/z', a = z/z'; an empty slot (z' = 0) is left alone.
// frozen: the same b, a = 1.
void AbcMlpStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const bool frozen = a.attributes.normalization == SlotNormalization::kFrozen;
  for (size_t j = 0; j < a.slots; ++j) {
    double keep = 0.0, put = 1.0, mass;
    bias[j] = 0.0f;
    if (a.attributes.activation == SlotActivation::kExp) {
      const double s = Logit(a, 0, j);
      mass = LogSumExp(a, j, 0);
      if (std::isnan(s)) put = s;
      if (!First(a)) {
        put = Sigmoid(s - a.mass[j]);
        keep = Sigmoid(a.mass[j] - s);
      }
    } else {
      const double past = a.mass[j];
      const double alpha = Control(a, 0, j);
      mass = past + alpha;
      put = mass <= 0.0 ? 0.0 : alpha / mass;
      keep = mass <= 0.0 ? 1.0 : past / mass;
      bias[j] = static_cast<float>(Bias(a, mass));
    }
    decay[j] = static_cast<float>(frozen ? 1.0 : keep);
    write[j] = static_cast<float>(put);
    a.mass[j] = static_cast<float>(mass);
  }
}

// exp: carry_t = exp(lse_0 - lse_t), gain_t = exp(m - lse_t), weight_i = exp(s_i - m), with m half-way between the largest logit
// and the log-sum-exp after the first token where that is below it, so that neither factor exceeds exp(kSlotLogLimit / 2). relu,
// sigmoid: carry_t = z_0/z_t, gain_t = 1/z_t, weight_i = alpha_i. frozen: carry = gain = 1, weight_i = b_i.
bool AbcMlpChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const bool exponential = a.attributes.activation == SlotActivation::kExp;
  for (size_t j = 0; j < a.slots; ++j) {
    for (size_t t = 0; t < a.tokens; ++t) {
      if (std::isnan(Logit(a, t, j))) return false;
    }
    if (!(exponential ? ExpFactors(a, j, carry, gain, weight) : SumFactors(a, j, carry, gain, weight))) return false;
  }
  for (size_t j = 0; j < a.slots; ++j) {
    for (size_t t = 0; t < a.tokens; ++t) {
      bias[t * a.slots + j] = exponential ? 0.0f : static_cast<float>(Bias(a, ControlSum(a, j, t)));
    }
    a.mass[j] = static_cast<float>(exponential ? LogSumExp(a, j, a.tokens - 1) : ControlSum(a, j, a.tokens - 1));
  }
  return true;
}

// exp: m' = max(m, s_1 .. s_C), l' = e^(m - m') l + sum_i e^(s_i - m'), carry = e^(m - m') l / l', weight_i = e^(s_i - m') / l'.
// relu, sigmoid: z' = z + sum_i alpha_i, carry = z/z', weight_i = alpha_i/z'; an empty slot is left alone.
void AbcBlock(const SlotControlArgs& a, float* top, float* carry, float* weight) {
  const bool exponential = a.attributes.activation == SlotActivation::kExp;
  for (size_t j = 0; j < a.slots; ++j) {
    double past = a.mass[j];
    if (exponential) {
      double m = First(a) ? Logit(a, 0, j) : static_cast<double>(top[j]);
      for (size_t t = 0; t < a.tokens; ++t) m = std::fmax(m, Logit(a, t, j));
      past = First(a) ? 0.0 : past * std::exp(top[j] - m);
      top[j] = static_cast<float>(m);
    }
    const auto control = [&](size_t t) { return exponential ? std::exp(Logit(a, t, j) - top[j]) : Control(a, t, j); };
    double mass = past;
    for (size_t t = 0; t < a.tokens; ++t) mass += control(t);
    carry[j] = static_cast<float>(mass <= 0.0 ? 1.0 : past / mass);
    for (size_t t = 0; t < a.tokens; ++t) weight[t * a.slots + j] = static_cast<float>(mass <= 0.0 ? 0.0 : control(t) / mass);
    a.mass[j] = static_cast<float>(mass);
  }
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
