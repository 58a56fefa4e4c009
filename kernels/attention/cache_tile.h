// Sizes of the tiles of cache attention.
#ifndef TARN_KERNELS_ATTENTION_CACHE_TILE_H_
#define TARN_KERNELS_ATTENTION_CACHE_TILE_H_

#include <cstddef>

namespace tarn {

constexpr size_t kCacheTile = 64;    // rows: keys and values of a tile, d = dv = 64, are 32 KiB
constexpr size_t kCacheQueries = 8;  // query heads that share a reading of a tile

}  // namespace tarn

#endif  // TARN_KERNELS_ATTENTION_CACHE_TILE_H_
