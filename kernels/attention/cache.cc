// Softmax over cached rows (MATH F3, 1.1), in tiles of rows with a running maximum: what was summed so far is scaled down when a
// larger logit comes (Milakov, Gimelshein 2018).
#include <algorithm>
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/cache.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/cache_tile.h"
#include "kernels/attention/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// The factor by which sums made under `before` are scaled when the maximum becomes `now`. Before the first tile there is nothing.
HWY_INLINE float Shrink(float before, float now) { return before == -HUGE_VALF ? 0.0f : std::exp(before - now); }

// o = shrink*o + p[rows] . values. o is not read when `shrink` is 0.
HWY_INLINE void GatherValues(const CacheArgs& a, size_t rows, const float* p, const float* values, float shrink, float* o) {
  if (shrink != 0.0f && shrink != 1.0f) Scale(a.value_dim, shrink, o);
  Gemm({1, a.value_dim, rows, p, rows, 1, values, a.value_dim, shrink != 0.0f, o, a.value_dim});
}

// One token: every tile of rows is read once, by all query heads while it is in the first cache.
void AttendStep(const CacheArgs& a, size_t first_query, size_t queries) {
  float top[kCacheQueries], total[kCacheQueries], p[kCacheTile];
  for (size_t g = 0; g < queries; ++g) {
    top[g] = -HUGE_VALF;
    total[g] = 0.0f;
  }
  for (size_t first = 0; first < a.rows; first += kCacheTile) {
    const size_t rows = std::min(kCacheTile, a.rows - first);
    for (size_t g = 0; g < queries; ++g) {
      const float* q = a.q + (first_query + g) * a.key_dim;
      for (size_t r = 0; r < rows; ++r) p[r] = a.scale * Dot(a.key_dim, q, a.keys + (first + r) * a.key_dim);
      const float before = top[g];
      const float sum = ExpRow(rows, p, top[g]);
      const float shrink = Shrink(before, top[g]);
      total[g] = total[g] * shrink + sum;
      GatherValues(a, rows, p, a.values + first * a.value_dim, shrink, a.o + (first_query + g) * a.value_dim);
    }
  }
  for (size_t g = 0; g < queries; ++g) Scale(a.value_dim, 1.0f / total[g], a.o + (first_query + g) * a.value_dim);
}

// Pieces of CacheArgs::scratch.
struct CacheBuffers {
  CacheBuffers(const CacheArgs& a)
      : keys_t(a.scratch), p(keys_t + a.key_dim * kCacheTile), top(p + a.tokens * kCacheTile), total(top + a.tokens) {}

  float* keys_t;  // [d, tile] keys of the tile, transposed
  float* p;       // [C, tile] logits, then probabilities before division
  float* top;     // [C] running maximum
  float* total;   // [C] running sum
};

// One query head of a chunk, one tile of rows: those from `first` on, for the tokens that see any of them.
HWY_INLINE void AttendTile(const CacheArgs& a, const CacheBuffers& s, size_t first, size_t rows, const float* q, float* o) {
  const size_t past = a.rows - a.tokens;  // token t sees the rows below past + t + 1
  const size_t from = first > past ? first - past : 0;
  const size_t tokens = a.tokens - from;
  float* p = s.p + from * kCacheTile;
  Gemm({tokens, rows, a.key_dim, q + from * a.q_stride, a.q_stride, 1, s.keys_t, rows, false, p, kCacheTile});
  for (size_t t = from; t < a.tokens; ++t) {
    float* row = s.p + t * kCacheTile;
    const size_t visible = std::min(rows, past + t + 1 - first);
    Scale(visible, a.scale, row);
    const float before = s.top[t];
    const float sum = ExpRow(visible, row, s.top[t]);
    std::fill(row + visible, row + rows, 0.0f);
    const float shrink = Shrink(before, s.top[t]);
    s.total[t] = s.total[t] * shrink + sum;
    if (shrink != 1.0f) Scale(a.value_dim, shrink, o + t * a.o_token_stride);
  }
  Gemm({tokens, a.value_dim, rows, p, kCacheTile, 1, a.values + first * a.value_dim, a.value_dim, true, o + from * a.o_token_stride,
        a.o_token_stride});
}

void AttendChunk(const CacheArgs& a) {
  const CacheBuffers s(a);
  for (size_t g = 0; g < a.queries; ++g) {
    float* o = a.o + g * a.value_dim;
    for (size_t t = 0; t < a.tokens; ++t) {
      s.top[t] = -HUGE_VALF;
      s.total[t] = 0.0f;
      std::fill(o + t * a.o_token_stride, o + t * a.o_token_stride + a.value_dim, 0.0f);
    }
    for (size_t first = 0; first < a.rows; first += kCacheTile) {
      const size_t rows = std::min(kCacheTile, a.rows - first);
      Transpose(rows, a.key_dim, a.keys + first * a.key_dim, a.key_dim, s.keys_t);
      AttendTile(a, s, first, rows, a.q + g * a.key_dim, o);
    }
    for (size_t t = 0; t < a.tokens; ++t) Scale(a.value_dim, 1.0f / s.total[t], o + t * a.o_token_stride);
  }
}

void CacheAttend(const CacheArgs& a) {
  if (a.tokens > 1) return AttendChunk(a);
  for (size_t g = 0; g < a.queries; g += kCacheQueries) AttendStep(a, g, std::min(kCacheQueries, a.queries - g));
}

void FillCache(Kernels& table) { table.cache_attend = CacheAttend; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
size_t CacheScratch(size_t tokens, size_t key_dim) { return kCacheTile * (key_dim + tokens) + 2 * tokens; }

HWY_EXPORT(FillCache);
void FillCache(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillCache)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
