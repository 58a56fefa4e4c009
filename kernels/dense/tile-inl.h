// Per-target pieces that the dense kernels share. A product is made in tiles of one or kTileRows rows of x and kTileOutputs rows of
// W: a vector of weights is loaded (and unpacked) once per tile, a vector of x is met by kTileOutputs of weights. Each element of a
// tile has a sum of its own, so what it becomes depends on neither the shape of the tile nor its neighbours.
#if defined(TARN_KERNELS_DENSE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_TILE_INL_H_
#undef TARN_KERNELS_DENSE_TILE_INL_H_
#else
#define TARN_KERNELS_DENSE_TILE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

constexpr size_t kTileOutputs = 4;
// As many as there are registers for sums.
constexpr size_t kTileRows = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL ? 2 : 4;

// Whether one row of x takes the rows of W of a tile one after the other and leaves it to the CPU to fetch them early. Zen 4 then
// reads int8 from memory at 28 GB/s (one thread) instead of 15 to 22, and takes a third longer for weights in its caches. Other
// CPUs with x86 were not measured. Two rows or int4 take too many instructions for that.
constexpr bool kOneRowInOrder = HWY_ARCH_X86;

// A vector with an element per output of a tile.
using DTile = hn::CappedTag<float, kTileOutputs>;
using VTile = hn::Vec<DTile>;

// Elements o and r, and those after them, of the outputs and of the rows of x; and weights that come next.
struct Tile {
  size_t o, outputs;
  size_t r, rows;
  const uint8_t* next;     // to be prefetched while the tile is in work
  size_t next_step_bytes;  // so many for every vector of a row
};

// Calls f(tile) for tiles that cover everything, outputs outermost: their weights stay in the cache for all rows. Each pass over
// them asks for its share of those that come next, in whole cache lines and in the order of memory, which CPUs then see as a
// stream; 4 KiB are what memory takes to answer. Beyond the end of memory a prefetch does nothing. `lanes`: weights of a row that a
// step of f takes.
template <typename W, typename F>
HWY_INLINE void ForEachTile(size_t rows, size_t out, const W* weights, size_t row_elements, size_t lanes, const F& f) {
  const size_t tile_bytes = kTileOutputs * row_elements * sizeof(W), passes = (rows + kTileRows - 1) / kTileRows;
  const size_t step_bytes = kTileOutputs * lanes * sizeof(W);
  const size_t share = (step_bytes / passes + kLineBytes - 1) / kLineBytes * kLineBytes;
  const uint8_t* ahead = reinterpret_cast<const uint8_t*>(weights) + std::max<size_t>(tile_bytes, 4096);
  for (size_t o = 0; o < out; o += kTileOutputs, ahead += tile_bytes) {
    const uint8_t* next = ahead;
    for (size_t r = 0; r < rows; r += kTileRows) {
      const size_t bytes = next < ahead + tile_bytes ? share : 0;
      f(Tile{o, std::min(out - o, kTileOutputs), r, std::min(rows - r, kTileRows), next, bytes});
      next += tile_bytes / step_bytes * share;
    }
  }
}

// Step i of a tile.
HWY_INLINE void PrefetchNext(const Tile& tile, size_t step) {
  const uint8_t* line = tile.next + step * tile.next_step_bytes;
  for (size_t at = 0; at < tile.next_step_bytes; at += kLineBytes) hwy::Prefetch(line + at);
}

// Four rows of a matrix; beyond its last one that one again, whose sums nobody stores.
template <typename T>
struct FourRows {
  FourRows(const T* base, size_t stride, size_t count) {
    for (size_t i = 0; i < 4; ++i) row[i] = base + std::min(i, count - 1) * stride;
  }
  const T* row[4];
};

// A vector of a row: a whole one, or the last one, padded with zeros behind its `left` elements.
template <bool kWhole, class D>
HWY_INLINE hn::Vec<D> LoadWholeOrPadded(D d, const hn::TFromD<D>* p, size_t left) {
  if constexpr (kWhole) return hn::LoadU(d, p);
  return hn::LoadN(d, p, left);
}

#if HWY_HAVE_SCALABLE

template <class D, class V = hn::Vec<D>, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<hn::CappedTag<T, kTileOutputs>> SumsOfFour(D d, V a, V b, V c, V e) {
  const T sums[kTileOutputs] = {hn::ReduceSum(d, a), hn::ReduceSum(d, b), hn::ReduceSum(d, c), hn::ReduceSum(d, e)};
  return hn::LoadU(hn::CappedTag<T, kTileOutputs>(), sums);
}

#else

// The sum of a vector's 128-bit blocks.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::CappedTag<hn::TFromD<D>, kTileOutputs>> SumOfBlocks(D d, V v) {
  if constexpr (hn::MaxLanes(d) <= kTileOutputs) {
    return v;
  } else {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The sums of four vectors of 32-bit lanes, side by side.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::CappedTag<hn::TFromD<D>, kTileOutputs>> SumsOfFour(D d, V a, V b, V c, V e) {
  const hn::Repartition<uint64_t, D> wide;
  const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));  // a b a b in every block
  const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const V low = hn::BitCast(d, hn::InterleaveLower(wide, hn::BitCast(wide, ab), hn::BitCast(wide, ce)));
  const V high = hn::BitCast(d, hn::InterleaveUpper(wide, hn::BitCast(wide, ab), hn::BitCast(wide, ce)));
  return SumOfBlocks(d, hn::Add(low, high));
}

#endif  // HWY_HAVE_SCALABLE

HWY_INLINE VTile LoadOutputs(const float* from, size_t outputs) { return hn::LoadN(DTile(), from, outputs); }

// y = v + bias; bias may be nullptr.
HWY_INLINE void StoreOutputs(VTile v, const float* bias, size_t outputs, float* y) {
  if (bias != nullptr) v = hn::Add(v, LoadOutputs(bias, outputs));
  hn::StoreN(v, DTile(), y, outputs);
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_DENSE_TILE_INL_H_
