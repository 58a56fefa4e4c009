// The decode step of the delta rule (MATH 1.6): one pass over the state retrieves what the key has stored, a second one writes the
// difference and reads.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/delta_step.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/denominator.h"
#include "kernels/attention/rank-one-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// What the retrieved value is divided by. 1 where nothing was stored under this key: 0/0 would spoil the state for good.
HWY_INLINE float Stored(const DeltaStepArgs& a) {
  if (a.norm == nullptr || a.first) return 1.0f;
  const float stored = Dot(a.features, a.phi_k, a.norm);
  return stored == 0.0f ? 1.0f : stored;
}

// What k finds is read from the state before it decays: the key decays in its place.
void DeltaStep(const DeltaStepArgs& a) {
  const bool by_row = a.row_decay != nullptr, decays = by_row || a.decay != 1.0f;
  const float* find = a.phi_k;
  if (by_row) {
    float* decayed = a.scratch + a.value_dim;
    Map2(a.features, a.phi_k, a.row_decay, decayed, [](DF, VF k, VF decay) HWY_ATTR { return hn::Mul(k, decay); });
    find = decayed;
  }
  RankOneArgs pass = {a.features,
                      a.value_dim,
                      1,
                      by_row ? a.row_decay : &a.decay,
                      by_row ? size_t{1} : 0,
                      decays,
                      a.phi_k,
                      a.v,
                      1.0f,
                      find,
                      0,
                      a.state,
                      a.scratch,
                      0,
                      false};
  RankOneRows<Pass::kRead>(pass);
  const float beta = a.beta, stored = Stored(a), kept = by_row ? 1.0f : a.decay;
  Map2(a.value_dim, a.v, a.scratch, a.scratch, [beta, stored, kept](DF d, VF v, VF old) HWY_ATTR {
    return hn::Mul(hn::Set(d, beta), hn::Sub(v, hn::Div(hn::Mul(old, hn::Set(d, kept)), hn::Set(d, stored))));
  });
  pass.queries = a.queries;
  pass.v = a.scratch;
  pass.read = a.phi_q;
  pass.read_stride = a.features;
  pass.o = a.o;
  pass.o_stride = a.value_dim;
  RankOneUpdateAndRead(pass);
  if (a.norm != nullptr) Map2(a.features, a.norm, a.phi_k, a.norm, [](DF, VF z, VF k) HWY_ATTR { return hn::Add(z, k); });
  for (size_t g = 0; g < a.queries; ++g) {
    float factor = a.scale;
    if (a.norm != nullptr) {
      factor /= GuardedDenominator(DenMode::kAdd, Dot(a.features, a.phi_q + g * a.features, a.norm), a.den_eps);
    }
    if (factor != 1.0f) Scale(a.value_dim, factor, a.o + g * a.value_dim);
  }
}

void FillDeltaStep(Kernels& table) { table.delta_step = DeltaStep; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillDeltaStep);
void FillDeltaStep(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillDeltaStep)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
