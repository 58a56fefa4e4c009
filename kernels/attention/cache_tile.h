// Tiles of cache attention: their size, and who sees what of them.
#ifndef TARN_KERNELS_ATTENTION_CACHE_TILE_H_
#define TARN_KERNELS_ATTENTION_CACHE_TILE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cache_attention.h"

namespace tarn {

// Rows of a tile. A chunk's are long, for the matrix products; a step's are so few that keys and values, once converted to f32,
// are still in the first cache when they are used (32 KiB at d = dv = 128).
constexpr size_t kCacheTile = 64, kCacheStepTile = 32;
static_assert(kCacheStepTile <= kCacheTile);  // the buffers have room for kCacheTile

// `rows` rows of a block from row `first` on.
struct CacheTile {
  const CacheBlock* block;
  size_t first;
  size_t rows;
};

struct Range {
  size_t first, last;  // [first, last)

  bool Empty() const { return first >= last; }
};

inline size_t ClampTo(int64_t x, size_t limit) {
  if (x <= 0) return 0;
  return static_cast<uint64_t>(x) < limit ? static_cast<size_t>(x) : limit;
}

inline Range Intersect(Range a, Range b) { return {std::max(a.first, b.first), std::min(a.last, b.last)}; }

// floor(a / b) for b > 0.
inline int64_t FloorDivide(int64_t a, int64_t b) { return b == 1 ? a : a / b - (a % b < 0 ? 1 : 0); }

// The rows of a tile, counted from its first, that token t sees: from + r*step <= t < until + r*step. They stand side by side, as
// both bounds are linear in r.
inline Range VisibleRows(const CacheTile& tile, size_t t) {
  const CacheBlock& b = *tile.block;
  const int64_t offset = static_cast<int64_t>(t) - static_cast<int64_t>(tile.first) * b.step;
  const int64_t begun = offset - b.from;   // r*step <= begun
  const int64_t ended = offset - b.until;  // r*step > ended
  if (b.step == 0) return {0, begun >= 0 && ended < 0 ? tile.rows : 0};
  if (b.step > 0) {
    return {ClampTo(FloorDivide(ended, b.step) + 1, tile.rows), ClampTo(FloorDivide(begun, b.step) + 1, tile.rows)};
  }
  return {ClampTo(-FloorDivide(begun, -b.step), tile.rows), ClampTo(-FloorDivide(ended, -b.step), tile.rows)};
}

// Of row r of the tile from token t: CacheBlock::position.
inline int64_t DistanceOf(const CacheTile& tile, size_t r, size_t t) {
  return tile.block->position + static_cast<int64_t>(tile.first + r) - static_cast<int64_t>(t);
}

// The tokens of a chunk that see any row of a tile, perhaps with some between them that see none, and those that see all rows.
struct TileTokens {
  TileTokens(const CacheTile& tile, size_t tokens) {
    const CacheBlock& b = *tile.block;
    const int64_t x = static_cast<int64_t>(tile.first) * b.step;
    const int64_t y = static_cast<int64_t>(tile.first + tile.rows - 1) * b.step;
    const int64_t low = std::min(x, y), high = std::max(x, y);
    any = {ClampTo(b.from + low, tokens), ClampTo(b.until + high, tokens)};
    all = {ClampTo(b.from + high, tokens), ClampTo(b.until + low, tokens)};
  }

  Range any, all;
};

}  // namespace tarn

#endif  // TARN_KERNELS_ATTENTION_CACHE_TILE_H_
