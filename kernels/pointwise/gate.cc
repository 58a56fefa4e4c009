// Gates. For a logit a: the forget gate of RFA-GATE (MATH 1.2.4), sigmoid(a), sigmoid(-a) and -softplus(-a); the vector gate of GLA
// (MATH 0.1), exp(logsigmoid(a) / normalizer); the softplus gate of Gated DeltaNet (MATH 1.6), exp(-rate * softplus(a)), and with
// its step that of Mamba 2 (MATH 0.1); the tied gate of HGRN2 (MATH 0.1), b + (1 - b) sigmoid(a); that of RWKV-7 (MATH 1.6),
// exp(least * sigmoid(a)); the write strength of the delta rule (MATH 1.6), scale * sigmoid(a).
#include <algorithm>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/gate.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

constexpr size_t kBlock = 64;  // logits that are brought together at a time

void ForgetGate(size_t n, const float* a, size_t a_stride, float* decay, float* write, float* log_decay) {
  const DF d;
  float block[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t count = std::min(kBlock, n - first);
    for (size_t i = 0; i < count; ++i) block[i] = a[(first + i) * a_stride];
    const size_t lanes = hn::Lanes(d);
    for (size_t i = 0; i < count; i += lanes) {
      const size_t left = count - i;
      const VF x = hn::LoadN(d, block + i, left);
      if (decay != nullptr) hn::StoreN(Sigmoid(d, x), d, decay + first + i, left);
      if (write != nullptr) hn::StoreN(Sigmoid(d, hn::Neg(x)), d, write + first + i, left);
      if (log_decay != nullptr) hn::StoreN(LogSigmoid(d, x), d, log_decay + first + i, left);
    }
  }
}

void VectorGate(size_t n, const float* a, float normalizer, float clamp_min, float* decay) {
  Map(n, a, decay, [normalizer, clamp_min](DF d, VF x) HWY_ATTR {
    return KeepNan(x, hn::Exp(d, hn::Max(hn::Div(LogSigmoid(d, x), hn::Set(d, normalizer)), hn::Set(d, clamp_min))));
  });
}

void SoftplusGate(size_t n, const float* a, size_t a_stride, float rate, float* decay, float* log_decay) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  float block[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t count = std::min(kBlock, n - first);
    for (size_t i = 0; i < count; ++i) block[i] = a[(first + i) * a_stride];
    for (size_t i = 0; i < count; i += lanes) {
      const size_t left = count - i;
      const VF log = hn::Mul(hn::Set(d, rate), LogSigmoid(d, hn::Neg(hn::LoadN(d, block + i, left))));
      if (decay != nullptr) hn::StoreN(Exp(d, log), d, decay + first + i, left);
      if (log_decay != nullptr) hn::StoreN(log, d, log_decay + first + i, left);
    }
  }
}

void StepGate(size_t n, const float* a, size_t a_stride, float rate, float least, float most, float* step, float* log_decay) {
  float block[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t count = std::min(kBlock, n - first);
    for (size_t i = 0; i < count; ++i) block[i] = a[(first + i) * a_stride];
    Map(count, block, step + first, [least, most](DF d, VF x) HWY_ATTR {
      const VF t = hn::Neg(LogSigmoid(d, hn::Neg(x)));
      return KeepNan(x, hn::Min(hn::Max(t, hn::Set(d, least)), hn::Set(d, most)));
    });
    Map(count, step + first, log_decay + first, [rate](DF d, VF t) HWY_ATTR { return hn::Mul(hn::Set(d, -rate), t); });
  }
}

void TiedGate(size_t n, const float* a, const float* bound, float* decay, float* key) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t left = n - i;
    const VF x = hn::LoadN(d, a + i, left), b = bound == nullptr ? hn::Zero(d) : hn::LoadN(d, bound + i, left);
    const VF open = hn::Sub(hn::Set(d, 1.0f), b);
    hn::StoreN(hn::MulAdd(open, Sigmoid(d, x), b), d, decay + i, left);
    hn::StoreN(hn::Mul(open, Sigmoid(d, hn::Neg(x))), d, key + i, left);
  }
}

void SigmoidGate(size_t n, const float* a, float least, float* decay) {
  Map(n, a, decay, [least](DF d, VF x) HWY_ATTR { return Exp(d, hn::Mul(hn::Set(d, least), Sigmoid(d, x))); });
}

void ScaledSigmoid(size_t n, const float* a, size_t a_stride, float scale, float* y) {
  float block[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t count = std::min(kBlock, n - first);
    for (size_t i = 0; i < count; ++i) block[i] = a[(first + i) * a_stride];
    Map(count, block, y + first, [scale](DF d, VF x) HWY_ATTR { return hn::Mul(Sigmoid(d, x), hn::Set(d, scale)); });
  }
}

void FillGate(Kernels& table) {
  table.forget_gate = ForgetGate;
  table.vector_gate = VectorGate;
  table.softplus_gate = SoftplusGate;
  table.step_gate = StepGate;
  table.tied_gate = TiedGate;
  table.sigmoid_gate = SigmoidGate;
  table.scaled_sigmoid = ScaledSigmoid;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillGate);
void FillGate(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillGate)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
