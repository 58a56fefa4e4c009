// The causal convolution of columns, each with its own taps. Equation: kernels/causal_conv.h.
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pointwise/causal_conv.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// y = f(bias + sum_j weight_j * row_j), in the order of the taps, for the columns from `first` on.
template <bool kSilu>
HWY_INLINE void ConvolveRow(const CausalConvArgs& a, const float* const* rows, size_t first, float* y) {
  const DF d;
  const size_t lanes = hn::Lanes(d), n = a.width, all = a.mixes * n, taps = a.taps;
  const float* const weight = a.weight + first;
  const float* const bias = a.bias == nullptr ? nullptr : a.bias + first;
  for (size_t i = 0; i < n; i += lanes) {
    const size_t left = n - i;
    VF sum = bias == nullptr ? hn::Zero(d) : hn::LoadN(d, bias + i, left);
    for (size_t j = 0; j < taps; ++j) {
      sum = hn::MulAdd(hn::LoadN(d, weight + j * all + i, left), hn::LoadN(d, rows[j] + i, left), sum);
    }
    if constexpr (kSilu) sum = hn::Mul(sum, Sigmoid(d, sum));
    hn::StoreN(sum, d, y + i, left);
  }
}

void CausalConv(const CausalConvArgs& a) {
  const size_t kept = a.taps - 1;
  // Row r of the rows before the chunk and then of its own.
  const auto row = [&a, kept](size_t r) { return r < kept ? a.state + r * a.width : a.x + (r - kept) * a.x_stride; };
  const float* rows[kMaxConvTaps];
  for (size_t t = 0; t < a.tokens; ++t) {
    for (size_t j = 0; j < a.taps; ++j) rows[j] = row(t + j);
    for (size_t first = 0; first < a.mixes * a.width; first += a.width) {
      float* y = a.y + t * a.y_stride + first;
      if (a.silu) {
        ConvolveRow<true>(a, rows, first, y);
      } else {
        ConvolveRow<false>(a, rows, first, y);
      }
    }
  }
  for (size_t r = 0; r < kept; ++r) std::memcpy(a.state + r * a.width, row(a.tokens + r), a.width * sizeof(float));
}

void FillCausalConv(Kernels& table) { table.causal_conv = CausalConv; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillCausalConv);
void FillCausalConv(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillCausalConv)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
