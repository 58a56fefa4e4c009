// A noncausal linear memory (MATH 0.2 "Non-causal", 1.2.2): its keys are written in blocks, its queries read in blocks, as matrix
// products.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/linear_noncausal.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/denominator.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// S <- carry*S + phi_k^T diag(write) V, z <- carry*z + write^T phi_k.
void LinearWrite(const LinearWriteArgs& a) {
  const float* v = a.v;
  size_t v_stride = a.v_stride;
  if (a.write != nullptr) {
    for (size_t t = 0; t < a.tokens; ++t) {
      const float write = a.write[t];
      Map(a.value_dim, a.v + t * a.v_stride, a.scratch + t * a.value_dim,
          [write](DF d, VF x) HWY_ATTR { return hn::Mul(hn::Set(d, write), x); });
    }
    v = a.scratch;
    v_stride = a.value_dim;
  }
  if (a.carry != 1.0f) Scale(a.features * a.value_dim, a.carry, a.state);
  Gemm({a.features, a.value_dim, a.tokens, a.phi_k, 1, a.features, v, v_stride, true, a.state, a.value_dim});
  if (a.norm == nullptr) return;
  if (a.carry != 1.0f) Scale(a.features, a.carry, a.norm);
  const float one = 1.0f;
  const float* write = a.write == nullptr ? &one : a.write;
  const size_t write_stride = a.write == nullptr ? 0 : 1;
  Gemm({1, a.features, a.tokens, write, 0, write_stride, a.phi_k, a.features, true, a.norm, a.features});
}

// o = scale * phi_q^T S / den.
void LinearRead(const LinearReadArgs& a) {
  const size_t m = a.features, dv = a.value_dim;
  GemmOfQueries({a.rows, a.queries, dv, m, a.phi_q, a.queries * m, m, a.state, a.o, a.o_stride, dv});
  if (a.den_mode == DenMode::kNone && a.scale == 1.0f) return;
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t g = 0; g < a.queries; ++g) {
      float factor = a.scale;
      if (a.den_mode != DenMode::kNone) {
        factor /= GuardedDenominator(a.den_mode, Dot(m, a.phi_q + (r * a.queries + g) * m, a.norm), a.den_eps);
      }
      Scale(dv, factor, a.o + r * a.o_stride + g * dv);
    }
  }
}

void FillLinearNoncausal(Kernels& table) {
  table.linear_write = LinearWrite;
  table.linear_read = LinearRead;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillLinearNoncausal);
void FillLinearNoncausal(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillLinearNoncausal)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
