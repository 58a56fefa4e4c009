// Control by causal Luna (MATH 1.9.5): p = log2(1 + 2^x), at token t a slot keeps t/(t+1) and takes p/(t+1).
#include "kernels/slot_controls/slot_controls.h"

#if TARN_SIMD
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/slot_controls/luna_causal.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/fill.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// to[j] = factor * p_j for one token, with p = max(x, 0) + log(1 + e^(-|x| ln 2)) / ln 2, which no x overflows.
HWY_INLINE void PutControls(const SlotControlArgs& a, size_t token, float factor, float* to) {
  constexpr float kLn2 = 0.69314718f;
  Map(a.slots, a.logits + token * a.logit_stride, to, [factor](DF d, VF x) HWY_ATTR {
    const VF e = hn::Exp(d, hn::Mul(hn::Abs(x), hn::Set(d, -kLn2)));
    const VF p = hn::MulAdd(hn::Log1p(d, e), hn::Set(d, 1.0f / kLn2), hn::Max(x, hn::Zero(d)));
    return KeepNan(x, hn::Mul(p, hn::Set(d, factor)));
  });
}

// t may have more than 24 bits, so the quotients are made in f64.
void LunaCausalStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const double t = static_cast<double>(a.tokens_seen);
  Fill(a.slots, static_cast<float>(t / (t + 1.0)), decay);
  PutControls(a, 0, static_cast<float>(1.0 / (t + 1.0)), write);
  Fill(a.slots, 0.0f, bias);
}

// The decays from token t_0 to token t multiply to t_0/(t+1).
bool LunaCausalChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const double before = static_cast<double>(a.tokens_seen);
  for (size_t t = 0; t < a.tokens; ++t) {
    const double seen = before + static_cast<double>(t + 1);
    Fill(a.slots, static_cast<float>(before / seen), carry + t * a.slots);
    Fill(a.slots, static_cast<float>(1.0 / seen), gain + t * a.slots);
    PutControls(a, t, 1.0f, weight + t * a.slots);
    if (std::isnan(Sum(a.slots, weight + t * a.slots))) return false;
  }
  Fill(a.tokens * a.slots, 0.0f, bias);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
TARN_SLOT_CONTROL(LunaCausal)
}  // namespace tarn
#endif

#else   // the reference
namespace tarn::reference {
namespace {

// Luna (MATH 1.9.5): log2(1 + 2^x) = max(x, 0) + log2(1 + 2^-|x|).
double Softplus2(const SlotControlArgs& a, size_t token, size_t slot) {
  const double x = a.logits[token * a.logit_stride + slot];
  return std::fmax(x, 0.0) + std::log1p(std::exp2(-std::fabs(x))) / std::log(2.0);
}

}  // namespace

// a = t/(t+1), b = p/(t+1). t may have more than 24 bits, so the quotients are made in f64.
void LunaCausalStep(const SlotControlArgs& a, float* decay, float* write, float* bias) {
  const double t = static_cast<double>(a.tokens_seen);
  for (size_t j = 0; j < a.slots; ++j) {
    decay[j] = static_cast<float>(t / (t + 1.0));
    write[j] = static_cast<float>(Softplus2(a, 0, j) / (t + 1.0));
    bias[j] = 0.0f;
  }
}

// The decays from token t_0 to token t multiply to t_0/(t+1).
bool LunaCausalChunk(const SlotControlArgs& a, float* carry, float* gain, float* weight, float* bias) {
  const double before = static_cast<double>(a.tokens_seen);
  for (size_t t = 0; t < a.tokens; ++t) {
    const double seen = before + static_cast<double>(t + 1);
    for (size_t j = 0; j < a.slots; ++j) {
      carry[t * a.slots + j] = static_cast<float>(before / seen);
      gain[t * a.slots + j] = static_cast<float>(1.0 / seen);
      weight[t * a.slots + j] = static_cast<float>(Softplus2(a, t, j));
      bias[t * a.slots + j] = 0.0f;
      if (std::isnan(weight[t * a.slots + j])) return false;
    }
  }
  return true;
}

}  // namespace tarn::reference
#endif  // TARN_SIMD
