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

void LinearStep(const LinearStepArgs& a) {
  const bool by_row = a.row_decay != nullptr;
  if (a.state.type == RowType::kF32) {
    UpdateAndRead(a, 0, a.features, 0, a.value_dim, a.state.as<float>());
  } else {
    ForEachF32Block(a.state, a.features, a.value_dim, [&](size_t row, size_t rows, size_t column, size_t columns, float* block) {
      UpdateAndRead(a, row, rows, column, columns, block);
      RowsToF16(block, rows, columns, a.state.as<uint16_t>() + row * a.value_dim + column, a.value_dim);
    });
  }
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

void FillLinearStep(Kernels& table) { table.linear_step = LinearStep; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillLinearStep);
void FillLinearStep(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillLinearStep)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
