// Scores of all keys (MATH 1.9.1, 1.9.2), as matrix products of the queries with tiles of keys, which are transposed for it.
#include <algorithm>
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/scores.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/cache_tile.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// s [R, count], rows s_row apart: the scores of keys [first, first + count), at most kCacheTile of them.
HWY_INLINE void ScoreTile(const ScoreArgs& a, size_t first, size_t count, float* s, size_t s_row) {
  Transpose(count, a.key_dim, a.k + first * a.k_stride, a.k_stride, a.scratch);
  Gemm({a.rows, count, a.key_dim, a.q, a.q_stride, 1, a.scratch, count, false, s, s_row});
}

void ScoreRows(const ScoreArgs& a, float* s) {
  for (size_t first = 0; first < a.keys; first += kCacheTile) {
    ScoreTile(a, first, std::min(kCacheTile, a.keys - first), s + first, a.keys);
  }
}

// The largest of x and `least`.
HWY_INLINE float Max(size_t n, const float* x, float least) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF high = hn::Set(d, least);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) high = hn::Max(high, hn::LoadU(d, x + i));
  if (i < n) high = hn::Max(high, hn::LoadNOr(hn::Set(d, least), d, x + i, n - i));
  return hn::ReduceMax(d, high);
}

void ScorePeak(const ScoreArgs& a, float* measure) {
  float* s = a.scratch + a.key_dim * kCacheTile;  // [R, tile]
  float* sum = s + a.rows * kCacheTile;           // [R]
  std::fill(measure, measure + a.rows, -HUGE_VALF);
  std::fill(sum, sum + a.rows, 0.0f);
  for (size_t first = 0; first < a.keys; first += kCacheTile) {
    const size_t count = std::min(kCacheTile, a.keys - first);
    ScoreTile(a, first, count, s, kCacheTile);
    for (size_t r = 0; r < a.rows; ++r) {
      measure[r] = Max(count, s + r * kCacheTile, measure[r]);
      sum[r] += Sum(count, s + r * kCacheTile);
    }
  }
  for (size_t r = 0; r < a.rows; ++r) measure[r] -= sum[r] / static_cast<float>(a.keys);
}

void SoftmaxRows(size_t rows, size_t n, float scale, float* p) {
  for (float* row = p; row != p + rows * n; row += n) {
    Scale(n, scale, row);
    float top = -HUGE_VALF;
    const float total = ExpRow(n, row, top);
    Scale(n, 1.0f / total, row);
  }
}

void WeighRows(size_t rows, size_t keys, size_t value_dim, const float* p, const float* v, size_t v_stride, float* o,
               size_t o_stride) {
  Gemm({rows, value_dim, keys, p, keys, 1, v, v_stride, false, o, o_stride});
}

void FillScores(Kernels& table) {
  table.score_rows = ScoreRows;
  table.score_peak = ScorePeak;
  table.softmax_rows = SoftmaxRows;
  table.weigh_rows = WeighRows;
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
uint64_t ScoreScratch(uint64_t rows, uint64_t key_dim) { return kCacheTile * (key_dim + rows) + rows; }

HWY_EXPORT(FillScores);
void FillScores(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillScores)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
