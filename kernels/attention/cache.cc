// Softmax over cached rows (MATH F3, 1.1), in tiles of rows with a running maximum: what was summed so far is scaled down when a
// larger logit comes (Milakov, Gimelshein 2018). What a token does not see takes no part in its arithmetic: a probability of 0
// would turn a NaN or an infinity that another token left in its row into NaN here.
#include <algorithm>
#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/cache.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention/cache_tile.h"
#include "kernels/gemm-inl.h"
#include "kernels/groups.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Pieces of CacheArgs::scratch.
struct CacheBuffers {
  CacheBuffers(const CacheArgs& a)
      : keys(a.scratch),
        values(keys + a.key_dim * kCacheTile),
        keys_t(values + a.value_dim * kCacheTile),
        p(keys_t + a.key_dim * kCacheTile),
        top(p + a.tokens * kCacheTile),
        total(top + a.tokens * a.queries) {}

  float* keys;    // [tile, d] keys of the tile in f32, where the block has another type
  float* values;  // [tile, dv] its values likewise
  float* keys_t;  // [d, tile] its keys transposed, for chunks
  float* p;       // [C, tile] logits, then probabilities before division, of one query head
  float* top;     // [G, C] running maximum
  float* total;   // [G, C] running sum
};

// ---- Rows in f32
// ---------------------------------------------------------------------------------------------------------------------

struct FloatRows {
  const float* rows;
  size_t stride;
};

// The rows of a tile where they are, or converted to `buffer` [rows, n].
HWY_INLINE FloatRows ReadRows(const CacheTile& tile, const void* rows, size_t stride, const float* scales, size_t n,
                              float* buffer) {
  if (tile.block->type == RowType::kF32) return {static_cast<const float*>(rows) + tile.first * stride, stride};
  RowsToF32({tile.block->type, rows, scales}, stride, tile.first, tile.rows, 0, n, buffer);
  return {buffer, n};
}

HWY_INLINE FloatRows ReadKeys(const CacheArgs& a, const CacheBuffers& s, const CacheTile& tile) {
  return ReadRows(tile, tile.block->keys, tile.block->key_stride, tile.block->key_scales, a.key_dim, s.keys);
}

HWY_INLINE FloatRows ReadValues(const CacheArgs& a, const CacheBuffers& s, const CacheTile& tile) {
  return ReadRows(tile, tile.block->values, tile.block->value_stride, tile.block->value_scales, a.value_dim, s.values);
}

// ---- The running softmax
// -------------------------------------------------------------------------------------------------------------

// Few models have one: it is not inlined, to keep the code of the others small.
HWY_NOINLINE void Cap(size_t n, float cap, float* p) {
  Map(n, p, p, [cap](DF d, VF x) HWY_ATTR { return Capped(d, x, cap); });
}

// x[i] += b.
HWY_INLINE void AddNumber(size_t n, float b, float* x) {
  Map(n, x, x, [b](DF d, VF v) HWY_ATTR { return hn::Add(v, hn::Set(d, b)); });
}

// p[r] += b_g(distance + r): the columns of a table stand in the order of rows, and beyond either end is one number.
HWY_NOINLINE void AddBias(const DistanceBias& bias, size_t g, int64_t distance, size_t n, float* p) {
  if (bias.table != nullptr) {
    const float* row = bias.table + g * bias.columns;
    const int64_t first = distance + bias.behind - 1;  // column of p[0]
    const size_t begin = ClampTo(-first, n), end = std::max(begin, ClampTo(static_cast<int64_t>(bias.columns) - first, n));
    AddNumber(begin, row[0], p);
    if (begin < end) {
      Map2(end - begin, p + begin, row + (first + static_cast<int64_t>(begin)), p + begin,
           [](DF, VF x, VF b) HWY_ATTR { return hn::Add(x, b); });
    }
    AddNumber(n - end, row[bias.columns - 1], p + end);
  }
  if (bias.slopes == nullptr) return;
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const VF slope = hn::Set(d, bias.slopes[g]);
  for (size_t i = 0; i < n; i += lanes) {
    const VF at = hn::Add(hn::Iota(d, 0), hn::Set(d, static_cast<float>(distance + static_cast<int64_t>(i))));
    const size_t count = std::min(lanes, n - i);
    hn::StoreN(hn::NegMulAdd(slope, hn::Abs(at), hn::LoadN(d, p + i, count)), d, p + i, count);
  }
}

// Where logits stand: those of query g of a token, of which the first one's row is at that distance.
struct LogitPlace {
  size_t g;
  int64_t distance;
};

// Logits p[n] become probabilities before division, next to those that `top` and `total` stand for. Returns the factor by which
// what was summed so far is scaled: 0 where that is nothing.
HWY_INLINE float AddToSoftmax(const CacheArgs& a, LogitPlace place, size_t n, float* p, float& top, float& total) {
  Scale(n, a.scale, p);
  if (a.soft_cap > 0) Cap(n, a.soft_cap, p);
  if (a.bias != nullptr) AddBias(*a.bias, place.g, place.distance, n, p);
  const float before = top;
  const float sum = ExpRow(n, p, top);
  const float shrink = before == -HUGE_VALF ? 0.0f : std::exp(before - top);
  total = total * shrink + sum;
  return shrink;
}

HWY_INLINE void Divide(size_t n, float total, float* o) {
  if (total == 0.0f) {  // no row was visible
    std::fill(o, o + n, 0.0f);
  } else {
    Scale(n, 1.0f / total, o);
  }
}

// ---- One token
// -----------------------------------------------------------------------------------------------------------------------

// Every tile of rows is read once, by all query heads while it is in the first cache. o is not read before something was summed.
HWY_INLINE void StepTile(const CacheArgs& a, const CacheBuffers& s, const CacheTile& tile) {
  const FloatRows keys = ReadKeys(a, s, tile);
  const FloatRows values = ReadValues(a, s, tile);
  for (size_t g = 0; g < a.queries; ++g) {
    const float* q = a.q + g * a.key_dim;
    float* o = a.o + g * a.value_dim;
    for (size_t r = 0; r < tile.rows; ++r) s.p[r] = Dot(a.key_dim, q, keys.rows + r * keys.stride);
    const float shrink = AddToSoftmax(a, {g, DistanceOf(tile, 0, 0)}, tile.rows, s.p, s.top[g], s.total[g]);
    if (shrink != 0.0f && shrink != 1.0f) Scale(a.value_dim, shrink, o);
    Gemm({1, a.value_dim, tile.rows, s.p, tile.rows, 1, values.rows, values.stride, shrink != 0.0f, o, a.value_dim});
  }
}

// Of each block, one token sees rows that stand side by side: its tiles need no mask.
void AttendStep(const CacheArgs& a, const CacheBuffers& s) {
  for (size_t i = 0; i < a.block_count; ++i) {
    const CacheBlock& block = a.blocks[i];
    const Range seen = VisibleRows({&block, 0, block.rows}, 0);
    for (size_t first = seen.first; first < seen.last; first += kCacheStepTile) {
      StepTile(a, s, {&block, first, std::min(kCacheStepTile, seen.last - first)});
    }
  }
  for (size_t g = 0; g < a.queries; ++g) Divide(a.value_dim, s.total[g], a.o + g * a.value_dim);
}

// ---- A chunk of tokens
// ---------------------------------------------------------------------------------------------------------------

// One query head and one tile, whose logits are in s.p.
struct HeadTile {
  const CacheArgs& a;
  const CacheBuffers& s;
  const CacheTile& tile;
  FloatRows values;
  size_t g;

  HWY_INLINE float* Output(size_t token) const { return a.o + token * a.o_token_stride + g * a.value_dim; }

  HWY_INLINE void Softmax(size_t token, Range rows) const {
    float* p = s.p + token * kCacheTile + rows.first;
    const size_t at = g * a.tokens + token;
    const float shrink =
        AddToSoftmax(a, {g, DistanceOf(tile, rows.first, token)}, rows.last - rows.first, p, s.top[at], s.total[at]);
    if (shrink != 1.0f) Scale(a.value_dim, shrink, Output(token));
  }

  // o += p[tokens, rows] . values[rows].
  HWY_INLINE void Gather(Range tokens, Range rows) const {
    if (rows.Empty()) return;
    Gemm({tokens.last - tokens.first, a.value_dim, rows.last - rows.first, s.p + tokens.first * kCacheTile + rows.first, kCacheTile,
          1, values.rows + rows.first * values.stride, values.stride, true, Output(tokens.first), a.o_token_stride});
  }
};

// Tokens that see all rows of the tile.
HWY_INLINE void SeeAll(const HeadTile& h, size_t rows, Range tokens) {
  if (tokens.Empty()) return;
  for (size_t t = tokens.first; t < tokens.last; ++t) h.Softmax(t, {0, rows});
  h.Gather(tokens, {0, rows});
}

// Tokens of which each sees rows of its own, four at a time as the matrix product has them: those that all four see together, and
// what is left and right of them token by token.
HWY_INLINE void SeeSome(const HeadTile& h, const CacheTile& tile, Range tokens) {
  constexpr size_t kGroup = 4;
  for (size_t first = tokens.first; first < tokens.last; first += kGroup) {
    const size_t count = std::min(kGroup, tokens.last - first);
    Range seen[kGroup];
    Range common = {0, tile.rows};
    for (size_t i = 0; i < count; ++i) {
      seen[i] = VisibleRows(tile, first + i);
      if (!seen[i].Empty()) h.Softmax(first + i, seen[i]);
      common = Intersect(common, seen[i]);
    }
    if (common.Empty()) common = {tile.rows, tile.rows};  // everything is left of it
    h.Gather({first, first + count}, common);
    for (size_t i = 0; i < count; ++i) {
      h.Gather({first + i, first + i + 1}, {seen[i].first, std::min(seen[i].last, common.first)});
      h.Gather({first + i, first + i + 1}, {common.last, seen[i].last});
    }
  }
}

// One tile for all query heads. A tile that no token sees is not read.
HWY_INLINE void ChunkTile(const CacheArgs& a, const CacheBuffers& s, const CacheTile& tile) {
  const TileTokens tokens(tile, a.tokens);
  const Range any = tokens.any;
  if (any.Empty()) return;
  const FloatRows keys = ReadKeys(a, s, tile);
  Transpose(tile.rows, a.key_dim, keys.rows, keys.stride, s.keys_t);
  const FloatRows values = ReadValues(a, s, tile);
  for (size_t g = 0; g < a.queries; ++g) {
    Gemm({any.last - any.first, tile.rows, a.key_dim, a.q + any.first * a.q_stride + g * a.key_dim, a.q_stride, 1, s.keys_t,
          tile.rows, false, s.p + any.first * kCacheTile, kCacheTile});
    const HeadTile head{a, s, tile, values, g};
    if (tokens.all.Empty()) {
      SeeSome(head, tile, any);
    } else {
      SeeSome(head, tile, {any.first, tokens.all.first});
      SeeAll(head, tile.rows, tokens.all);
      SeeSome(head, tile, {tokens.all.last, any.last});
    }
  }
}

void AttendChunk(const CacheArgs& a, const CacheBuffers& s) {
  for (size_t t = 0; t < a.tokens; ++t) {
    float* o = a.o + t * a.o_token_stride;
    std::fill(o, o + a.queries * a.value_dim, 0.0f);
  }
  for (size_t i = 0; i < a.block_count; ++i) {
    const CacheBlock& block = a.blocks[i];
    for (size_t first = 0; first < block.rows; first += kCacheTile) {
      ChunkTile(a, s, {&block, first, std::min(kCacheTile, block.rows - first)});
    }
  }
  for (size_t g = 0; g < a.queries; ++g) {
    for (size_t t = 0; t < a.tokens; ++t) {
      Divide(a.value_dim, s.total[g * a.tokens + t], a.o + t * a.o_token_stride + g * a.value_dim);
    }
  }
}

void CacheAttend(const CacheArgs& a) {
  const CacheBuffers s(a);
  std::fill(s.top, s.top + a.tokens * a.queries, -HUGE_VALF);
  std::fill(s.total, s.total + a.tokens * a.queries, 0.0f);
  if (a.tokens == 1) return AttendStep(a, s);
  AttendChunk(a, s);
}

void FillCache(Kernels& table) { table.cache_attend = CacheAttend; }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
uint64_t CacheScratch(uint64_t tokens, uint64_t queries, uint64_t key_dim, uint64_t value_dim) {
  return kCacheTile * (2 * key_dim + value_dim + tokens) + 2 * tokens * queries;
}

HWY_EXPORT(FillCache);
void FillCache(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillCache)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
