// The decode step of the linear state (MATH F1; RFA eq. 6-7, GLA).
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/linear_step.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/denominator.h"
#include "kernels/attention/rank-one-inl.h"
#include "kernels/groups.h"
#include "kernels/stored-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Rows [row, row + rows) of S, columns [column, column + columns) of them, which lie at `state` [rows, columns].
HWY_NOINLINE void UpdateAndRead(const LinearStepArgs& a, size_t row, size_t rows, size_t column, size_t columns, float* state) {
  const bool by_row = a.row_decay != nullptr;
  // No system has both decays: with a decay per row, the scalar one takes a pass of its own.
  if (by_row && a.decay != 1.0f) Scale(rows * columns, a.decay, state);
  RankOneUpdateAndRead({rows, columns, a.queries, by_row ? a.row_decay + row : &a.decay, by_row ? size_t{1} : 0,
                        by_row || a.decay != 1.0f, a.phi_k + row, a.v + column, a.write, a.phi_q + row, a.features, state,
                        a.o + column, a.value_dim, row > 0});
}

// The same of two steps, whose states stay in registers between them.
template <size_t kVectors, bool kMasked>
HWY_INLINE void UpdateAndReadTwice(const LinearStepArgs& a, const LinearStepArgs& b, size_t col, size_t count) {
  const DF d;
  const VF zero = hn::Zero(d), decay_a = hn::Set(d, a.decay), decay_b = hn::Set(d, b.decay);
  VF v0 = zero, v1 = zero, v2 = zero, v3 = zero, w0 = zero, w1 = zero, w2 = zero, w3 = zero;
  LoadCells<kVectors, kMasked>(a.v + col, count, v0, v1, v2, v3);
  LoadCells<kVectors, kMasked>(b.v + col, count, w0, w1, w2, w3);
  ScaleCells<kVectors>(hn::Set(d, a.write), v0, v1, v2, v3);
  ScaleCells<kVectors>(hn::Set(d, b.write), w0, w1, w2, w3);
  VF o0 = zero, o1 = zero, o2 = zero, o3 = zero, p0 = zero, p1 = zero, p2 = zero, p3 = zero;
  const float *k_a = a.phi_k, *k_b = b.phi_k, *q_a = a.phi_q, *q_b = b.phi_q;
  const size_t rows = a.features, cols = a.value_dim;
  float* HWY_RESTRICT cell = a.state.as<float>() + col;
  for (size_t r = 0; r < rows; ++r, cell += cols) {
    VF s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    LoadCells<kVectors, kMasked>(cell, count, s0, s1, s2, s3);
    ScaleCells<kVectors>(decay_a, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, k_a[r]), v0, v1, v2, v3, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, q_a[r]), s0, s1, s2, s3, o0, o1, o2, o3);
    ScaleCells<kVectors>(decay_b, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, k_b[r]), w0, w1, w2, w3, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, q_b[r]), s0, s1, s2, s3, p0, p1, p2, p3);
    StoreCells<kVectors, kMasked>(s0, s1, s2, s3, cell, count);
  }
  StoreCells<kVectors, kMasked>(o0, o1, o2, o3, a.o + col, count);
  StoreCells<kVectors, kMasked>(p0, p1, p2, p3, b.o + col, count);
}

// Norm and denominator, behind UpdateAndRead.
void Divide(const LinearStepArgs& a) {
  const bool by_row = a.row_decay != nullptr;
  if (by_row && a.den_mode != DenMode::kNone) {
    Map2(a.features, a.norm, a.row_decay, a.norm, [](DF, VF z, VF decay) HWY_ATTR { return hn::Mul(z, decay); });
  }
  if (a.den_mode != DenMode::kNone) {
    const float decay = a.decay, write = a.write;
    Map2(a.features, a.norm, a.phi_k, a.norm,
         [decay, write](DF d, VF z, VF k) HWY_ATTR { return hn::MulAdd(hn::Set(d, write), k, hn::Mul(hn::Set(d, decay), z)); });
  }
  for (size_t g = 0; g < a.queries; ++g) {
    float factor = a.scale;
    if (a.den_mode != DenMode::kNone) {
      factor /= GuardedDenominator(a.den_mode, Dot(a.features, a.phi_q + g * a.features, a.norm), a.den_eps);
    }
    if (factor != 1.0f) Scale(a.value_dim, factor, a.o + g * a.value_dim);
  }
}

void LinearStep(const LinearStepArgs& a) {
  if (a.state.type == RowType::kF32) {
    UpdateAndRead(a, 0, a.features, 0, a.value_dim, a.state.as<float>());
  } else {
    ForEachF32Block(a.state, a.features, a.value_dim, [&](size_t row, size_t rows, size_t column, size_t columns, float* block) {
      UpdateAndRead(a, row, rows, column, columns, block);
      RowsToF16(block, rows, columns, a.state.as<uint16_t>() + row * a.value_dim + column, a.value_dim);
    });
  }
  Divide(a);
}

// What two steps work on fits 32 registers.
constexpr bool kHasPairs = HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3);

HWY_NOINLINE void LinearStepPair(const LinearStepArgs& a, const LinearStepArgs& b) {
  const size_t lanes = hn::Lanes(DF()), cols = a.value_dim;
  size_t col = 0;
  for (; col + 4 * lanes <= cols; col += 4 * lanes) UpdateAndReadTwice<4, false>(a, b, col, 0);
  for (; col + lanes <= cols; col += lanes) UpdateAndReadTwice<1, false>(a, b, col, 0);
  if (col < cols) UpdateAndReadTwice<1, true>(a, b, col, cols - col);
  Divide(a);
  Divide(b);
}

void LinearSteps(size_t count, const LinearStepArgs* steps) {
  size_t i = 0;
  if constexpr (kHasPairs) {
    const bool has_pairs = steps->state.type == RowType::kF32 && steps->row_decay == nullptr && steps->queries == 1;
    for (; has_pairs && i + 2 <= count; i += 2) LinearStepPair(steps[i], steps[i + 1]);
  }
  for (; i < count; ++i) LinearStep(steps[i]);
}

void FillLinearStep(Kernels& table) { table.linear_steps = LinearSteps; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillLinearStep);
void FillLinearStep(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillLinearStep)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
