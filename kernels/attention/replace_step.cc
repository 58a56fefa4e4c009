// The decode step of rule "replace" (RWKV-7; MATH 1.6). Columns of the state have nothing to do with each other: those of a few
// vectors are read once for what is stored under the removal key, and again, from the first cache, to be written and read.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/replace_step.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/rank-one-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// S <- decay S + phi_k x v - taken x old of one tile of columns, with old = S^T removal, and o of the first query.
template <size_t kVectors, bool kMasked>
HWY_INLINE void ReplaceTile(const ReplaceStepArgs& a, size_t col, size_t count) {
  const DF d;
  const VF zero = hn::Zero(d);
  // Copies: what is stored below might be a field of `a`, as far as the compiler knows.
  const size_t rows = a.features, cols = a.value_dim, decay_step = a.row_decay == nullptr ? 0 : 1;
  const float *removal = a.removal, *taken = a.taken, *write = a.phi_k, *read = a.phi_q;
  const float* const decay = a.row_decay == nullptr ? &a.decay : a.row_decay;
  float* const first = a.state + col;
  VF e0 = zero, e1 = zero, e2 = zero, e3 = zero;  // -old
  float* HWY_RESTRICT cell = first;
  for (size_t r = 0; r < rows; ++r, cell += cols) {
    VF s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    LoadCells<kVectors, kMasked>(cell, count, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, -removal[r]), s0, s1, s2, s3, e0, e1, e2, e3);
  }
  VF v0 = zero, v1 = zero, v2 = zero, v3 = zero, o0 = zero, o1 = zero, o2 = zero, o3 = zero;
  LoadCells<kVectors, kMasked>(a.v + col, count, v0, v1, v2, v3);
  cell = first;
  for (size_t r = 0; r < rows; ++r, cell += cols) {
    VF s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    LoadCells<kVectors, kMasked>(cell, count, s0, s1, s2, s3);
    ScaleCells<kVectors>(hn::Set(d, decay[r * decay_step]), s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, taken[r]), e0, e1, e2, e3, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, write[r]), v0, v1, v2, v3, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, read[r]), s0, s1, s2, s3, o0, o1, o2, o3);
    StoreCells<kVectors, kMasked>(s0, s1, s2, s3, cell, count);
  }
  StoreCells<kVectors, kMasked>(o0, o1, o2, o3, a.o + col, count);
}

void ReplaceStep(const ReplaceStepArgs& a) {
  const size_t lanes = hn::Lanes(DF()), cols = a.value_dim;
  size_t col = 0;
  for (; col + 4 * lanes <= cols; col += 4 * lanes) ReplaceTile<4, false>(a, col, 0);
  for (; col + lanes <= cols; col += lanes) ReplaceTile<1, false>(a, col, 0);
  if (col < cols) ReplaceTile<1, true>(a, col, cols - col);
  if (a.queries > 1) {
    const float none = 1.0f;
    RankOneRows<Pass::kRead>({a.features, cols, a.queries - 1, &none, 0, false, a.phi_k, a.v, 1.0f, a.phi_q + a.features,
                              a.features, a.state, a.o + cols, cols, false});
  }
  if (a.scale != 1.0f) Scale(a.queries * cols, a.scale, a.o);
}

void FillReplaceStep(Kernels& table) { table.replace_step = ReplaceStep; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillReplaceStep);
void FillReplaceStep(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillReplaceStep)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
