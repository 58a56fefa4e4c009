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

// A vector with an element per output of a tile.
using DTile = hn::CappedTag<float, kTileOutputs>;
using VTile = hn::Vec<DTile>;

// Elements o and r, and those after them, of the outputs and of the rows of x.
struct Tile {
  size_t o, outputs;
  size_t r, rows;
};

// Calls f(tile) for tiles that cover everything, outputs outermost: their weights stay in the cache for all rows.
template <typename F>
HWY_INLINE void ForEachTile(size_t rows, size_t out, const F& f) {
  for (size_t o = 0; o < out; o += kTileOutputs) {
    for (size_t r = 0; r < rows; r += kTileRows) {
      f(Tile{o, std::min(out - o, kTileOutputs), r, std::min(rows - r, kTileRows)});
    }
  }
}

// Four rows of a matrix; beyond its last one that one again, whose sums nobody stores.
template <typename T>
struct FourRows {
  FourRows(const T* base, size_t stride, size_t count) {
    for (size_t i = 0; i < 4; ++i) row[i] = base + std::min(i, count - 1) * stride;
  }
  const T* row[4];
};

// Asks for weights of a tile to come, while those at i are in use: four short rows side by side are no stream that CPUs see. 4 KiB
// are what memory takes to answer. Beyond the end of memory a prefetch does nothing.
template <typename T>
HWY_INLINE void PrefetchNext(const FourRows<T>& w, size_t i, size_t row_elements) {
  const size_t ahead = std::max<size_t>(kTileOutputs * row_elements * sizeof(T), 4096);
  for (const T* row : w.row) hwy::Prefetch(reinterpret_cast<const uint8_t*>(row + i) + ahead);
}

// A vector of a row, or its last one with zeros behind its `left` elements.
template <bool kWhole, class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const hn::TFromD<D>* p, size_t left) {
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
