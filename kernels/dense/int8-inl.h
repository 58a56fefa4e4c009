// Dense layers with int8 weights on rows quantized to u8. With Z the zero point, sum (q - Z) w = sum q w - Z sum w: the first sum
// is what instructions for products of bytes make (of q - 128 on ARM and in pairs: products-inl.h), the second is the same for all
// rows of x. Either may leave i32 where the whole does not, which is well: i32 vectors wrap.
#if defined(TARN_KERNELS_DENSE_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_INT8_INL_H_
#undef TARN_KERNELS_DENSE_INT8_INL_H_
#else
#define TARN_KERNELS_DENSE_INT8_INL_H_
#endif

#include "kernels/dense/int8-lanes-inl.h"
#include "kernels/dense/products-inl.h"
#include "kernels/dense/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// What the passes behind the first one over the rows of a tile know of its weights.
struct TileWeights {
  int32_t sums[kTileOutputs];
  bool any_least;  // whether one is -128, which AddPairs() cannot take; only where there is AddPairs()
};

// What x is moved down by before it is multiplied.
template <bool kPairs>
constexpr int32_t kInt8Moved = kPairs ? 128 : kX8Moved;

template <bool kPairs, bool kWhole>
HWY_INLINE void AddInt8(const uint8_t* q, size_t left, VI8 w0, VI8 w1, VI8 w2, VI8 w3, VI32& s0, VI32& s1, VI32& s2, VI32& s3) {
  if constexpr (kPairs) {
    const VI8 x = LoadX8<kWhole, kInt8Moved<kPairs>>(DI8(), q, left);
    s0 = AddPairs(x, w0, s0);
    s1 = AddPairs(x, w1, s1);
    s2 = AddPairs(x, w2, s2);
    s3 = AddPairs(x, w3, s3);
  } else {
    const VX8 x = LoadX8<kWhole>(DX8(), q, left);
    s0 = AddProducts(x, w0, s0);
    s1 = AddProducts(x, w1, s1);
    s2 = AddProducts(x, w2, s2);
    s3 = AddProducts(x, w3, s3);
  }
}

// A vector of the tile. s<row of x><row of W>; z and least: of the weights alone, in the first pass.
template <size_t kRows, bool kFirst, bool kPairs, bool kWhole>
HWY_INLINE void Int8Step(const FourRows<uint8_t>& x, const FourRows<int8_t>& w, size_t i, size_t left, VI8& least, VI32& z0,
                         VI32& z1, VI32& z2, VI32& z3, VI32& s00, VI32& s01, VI32& s02, VI32& s03, VI32& s10, VI32& s11, VI32& s12,
                         VI32& s13, VI32& s20, VI32& s21, VI32& s22, VI32& s23, VI32& s30, VI32& s31, VI32& s32, VI32& s33) {
  const DI8 d8;
  const VI8 w0 = LoadWholeOrPadded<kWhole>(d8, w.row[0] + i, left), w1 = LoadWholeOrPadded<kWhole>(d8, w.row[1] + i, left);
  const VI8 w2 = LoadWholeOrPadded<kWhole>(d8, w.row[2] + i, left), w3 = LoadWholeOrPadded<kWhole>(d8, w.row[3] + i, left);
  if constexpr (kFirst) {
    z0 = AddBytes(w0, z0);
    z1 = AddBytes(w1, z1);
    z2 = AddBytes(w2, z2);
    z3 = AddBytes(w3, z3);
    if constexpr (kHavePairs) least = hn::Min(least, hn::Min(hn::Min(w0, w1), hn::Min(w2, w3)));
  }
  AddInt8<kPairs, kWhole>(x.row[0] + i, left, w0, w1, w2, w3, s00, s01, s02, s03);
  if constexpr (kRows > 1) AddInt8<kPairs, kWhole>(x.row[1] + i, left, w0, w1, w2, w3, s10, s11, s12, s13);
  if constexpr (kRows > 2) AddInt8<kPairs, kWhole>(x.row[2] + i, left, w0, w1, w2, w3, s20, s21, s22, s23);
  if constexpr (kRows > 2) AddInt8<kPairs, kWhole>(x.row[3] + i, left, w0, w1, w2, w3, s30, s31, s32, s33);
}

// Row o of W and row 0 of x: into the sums of their products and, z, of the weights. Two of each, so that neither waits for itself.
HWY_INLINE void Int8Row(const FourRows<uint8_t>& x, const FourRows<int8_t>& w, size_t o, size_t in, VI32& z, VI32& s) {
  const DI8 d8;
  const DX8 dx;
  const size_t lanes = hn::Lanes(d8);
  VI32 z_odd = hn::Zero(DI32()), s_odd = z_odd;
  size_t i = 0;
  for (; i + 2 * lanes <= in; i += 2 * lanes) {
    const VI8 even = hn::LoadU(d8, w.row[o] + i), odd = hn::LoadU(d8, w.row[o] + i + lanes);
    z = AddBytes(even, z);
    z_odd = AddBytes(odd, z_odd);
    s = AddProducts(LoadX8<true>(dx, x.row[0] + i, lanes), even, s);
    s_odd = AddProducts(LoadX8<true>(dx, x.row[0] + i + lanes, lanes), odd, s_odd);
  }
  for (; i < in; i += lanes) {
    const VI8 last = LoadWholeOrPadded<false>(d8, w.row[o] + i, in - i);
    z = AddBytes(last, z);
    s = AddProducts(LoadX8<false>(dx, x.row[0] + i, in - i), last, s);
  }
  z = hn::Add(z, z_odd);
  s = hn::Add(s, s_odd);
}

struct Int8Args {
  FourRows<uint8_t> x;
  FourRows<int8_t> w;
  const Qdu8* params;   // of the rows of the tile
  const float* scales;  // of its outputs
  const float* bias;
  float* y;
  size_t y_stride;
};

// `known` is written by the first pass, else read.
template <size_t kRows, bool kFirst, bool kPairs = false>
HWY_NOINLINE void Int8Tile(size_t in, const Int8Args& a, const Tile& tile, TileWeights& known) {
  const DI32 d;
  const hn::RebindToSigned<DTile> di;
  [[maybe_unused]] const size_t lanes = hn::Lanes(DI8());
  VI32 z0 = hn::Zero(d), z1 = z0, z2 = z0, z3 = z0;
  VI32 s00 = z0, s01 = z0, s02 = z0, s03 = z0, s10 = z0, s11 = z0, s12 = z0, s13 = z0;
  VI32 s20 = z0, s21 = z0, s22 = z0, s23 = z0, s30 = z0, s31 = z0, s32 = z0, s33 = z0;
  [[maybe_unused]] VI8 least = hn::Zero(DI8());
  if constexpr (kRows == 1 && kOneRowInOrder) {
    Int8Row(a.x, a.w, 0, in, z0, s00);
    Int8Row(a.x, a.w, 1, in, z1, s01);
    Int8Row(a.x, a.w, 2, in, z2, s02);
    Int8Row(a.x, a.w, 3, in, z3, s03);
  } else {
    size_t i = 0;
    for (; i + lanes <= in; i += lanes) {
      PrefetchNext(tile, i / lanes);
      Int8Step<kRows, kFirst, kPairs, true>(a.x, a.w, i, lanes, least, z0, z1, z2, z3, s00, s01, s02, s03, s10, s11, s12, s13, s20,
                                            s21, s22, s23, s30, s31, s32, s33);
    }
    if (i < in) {
      Int8Step<kRows, kFirst, kPairs, false>(a.x, a.w, i, in - i, least, z0, z1, z2, z3, s00, s01, s02, s03, s10, s11, s12, s13,
                                             s20, s21, s22, s23, s30, s31, s32, s33);
    }
  }
  if constexpr (kFirst) {
    hn::StoreU(SumsOfFour(d, z0, z1, z2, z3), di, known.sums);
    if constexpr (kHavePairs) known.any_least = !hn::AllFalse(DI8(), hn::Eq(least, hn::Set(DI8(), int8_t{-128})));
  }
  const auto put = [&](size_t row, hn::Vec<decltype(di)> sums) HWY_ATTR {
    if (row >= tile.rows) return;
    const auto shift = hn::Mul(hn::Set(di, a.params[row].zero_point - kInt8Moved<kPairs>), hn::LoadU(di, known.sums));
    const VTile scale = hn::Mul(hn::Set(DTile(), a.params[row].scale), LoadOutputs(a.scales, tile.outputs));
    StoreOutputs(hn::Mul(hn::ConvertTo(DTile(), hn::Sub(sums, shift)), scale), a.bias, tile.outputs, a.y + row * a.y_stride);
  };
  put(0, SumsOfFour(d, s00, s01, s02, s03));
  if constexpr (kRows > 1) put(1, SumsOfFour(d, s10, s11, s12, s13));
  if constexpr (kRows > 2) put(2, SumsOfFour(d, s20, s21, s22, s23));
  if constexpr (kRows > 2) put(3, SumsOfFour(d, s30, s31, s32, s33));
}

inline void DenseQdu8Qc8w(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                          const float* weight_scale, const float* bias, float* y, size_t y_stride) {
#if TARN_HAVE_INT8_LANES
  while (FitsLanes(rows, in)) {
    const size_t now = std::min(rows, kLaneRows);
    DenseLanes(now, in, out, q, params, weight, weight_scale, bias, y, y_stride);
    rows -= now, q += now * in, params += now, y += now * y_stride;
  }
#endif
  if (rows == 0) return;
  TileWeights known;
  ForEachTile(rows, out, weight, in, hn::Lanes(DI8()), [&](const Tile& tile) HWY_ATTR {
    const Int8Args args = {
        {q + tile.r * in, in, tile.rows},          {weight + tile.o * in, in, tile.outputs}, params + tile.r, weight_scale + tile.o,
        bias == nullptr ? nullptr : bias + tile.o, y + tile.r * y_stride + tile.o,           y_stride};
    if (tile.r == 0) {
      tile.rows == 1 ? Int8Tile<1, true>(in, args, tile, known) : Int8Tile<kTileRows, true>(in, args, tile, known);
    } else if (kHavePairs && !known.any_least) {
      Int8Tile<kTileRows, false, kHavePairs>(in, args, tile, known);
    } else {
      Int8Tile<kTileRows, false>(in, args, tile, known);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_DENSE_INT8_INL_H_
