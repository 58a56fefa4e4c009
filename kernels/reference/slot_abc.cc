// Control by ABC-MLP (MATH 1.8.1). The step is the O(1) recurrence; the chunk forms every running sum anew from the logits.
#include <cmath>

#include "kernels/reference/reference.h"
#include "kernels/slot_limits.h"

namespace tarn::reference {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

bool First(const SlotControlArgs& a) { return a.tokens_seen == 0; }

double Logit(const SlotControlArgs& a, size_t token, size_t slot) {
  const double s = a.logits[token * a.logit_stride + slot];
  if (std::isnan(s)) return s;
  return std::fmin(std::fmax(s, static_cast<double>(a.clamp_min)), static_cast<double>(a.clamp_max));
}

// alpha of relu and sigmoid. Rounded to f32, as its sum is kept: a sigmoid below f32's range leaves no mass.
double Control(const SlotControlArgs& a, size_t token, size_t slot) {
  const double s = Logit(a, token, slot);
  return static_cast<double>(static_cast<float>(a.activation == SlotActivation::kSigmoid ? Sigmoid(s) : s < 0.0 ? 0.0 : s));
}

double Bias(const SlotControlArgs& a, double mass) { return a.mask_empty && mass <= 0.0 ? -HUGE_VAL : 0.0; }

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
  const bool frozen = a.normalization == SlotNormalization::kFrozen;
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
  const bool frozen = a.normalization == SlotNormalization::kFrozen;
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
void AbcStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const bool frozen = a.normalization == SlotNormalization::kFrozen;
  for (size_t j = 0; j < a.slots; ++j) {
    double keep = 0.0, put = 1.0, mass;
    bias[j] = 0.0f;
    if (a.activation == SlotActivation::kExp) {
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
bool AbcChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const bool exponential = a.activation == SlotActivation::kExp;
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
  const bool exponential = a.activation == SlotActivation::kExp;
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
