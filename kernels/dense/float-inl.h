// Dense layers with f32 or f16 weights: x and sums in f32.
#if defined(TARN_KERNELS_DENSE_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_FLOAT_INL_H_
#undef TARN_KERNELS_DENSE_FLOAT_INL_H_
#else
#define TARN_KERNELS_DENSE_FLOAT_INL_H_
#endif

#include "kernels/dense/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

template <bool kWhole>
HWY_INLINE VF LoadFloats(DF d, const float* p, size_t left) {
  return LoadWholeOrPadded<kWhole>(d, p, left);
}
template <bool kWhole>
HWY_INLINE VF LoadFloats(DF d, const uint16_t* p, size_t left) {
  const hn::Rebind<uint16_t, DF> du;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(d, hn::BitCast(dh, LoadWholeOrPadded<kWhole>(du, p, left)));
}

// A vector of one row of x, into the sums of that row.
HWY_INLINE void AddFloats(VF x, VF w0, VF w1, VF w2, VF w3, VF& s0, VF& s1, VF& s2, VF& s3) {
  s0 = hn::MulAdd(x, w0, s0);
  s1 = hn::MulAdd(x, w1, s1);
  s2 = hn::MulAdd(x, w2, s2);
  s3 = hn::MulAdd(x, w3, s3);
}

// A vector of the tile: element i and those after it of every row. s<row of x><row of W>.
template <size_t kRows, bool kWhole, typename W>
HWY_INLINE void FloatStep(const FourRows<float>& x, const FourRows<W>& w, size_t i, size_t left, VF& s00, VF& s01, VF& s02, VF& s03,
                          VF& s10, VF& s11, VF& s12, VF& s13, VF& s20, VF& s21, VF& s22, VF& s23, VF& s30, VF& s31, VF& s32,
                          VF& s33) {
  const DF d;
  const VF w0 = LoadFloats<kWhole>(d, w.row[0] + i, left), w1 = LoadFloats<kWhole>(d, w.row[1] + i, left);
  const VF w2 = LoadFloats<kWhole>(d, w.row[2] + i, left), w3 = LoadFloats<kWhole>(d, w.row[3] + i, left);
  AddFloats(LoadFloats<kWhole>(d, x.row[0] + i, left), w0, w1, w2, w3, s00, s01, s02, s03);
  if constexpr (kRows > 1) AddFloats(LoadFloats<kWhole>(d, x.row[1] + i, left), w0, w1, w2, w3, s10, s11, s12, s13);
  if constexpr (kRows > 2) AddFloats(LoadFloats<kWhole>(d, x.row[2] + i, left), w0, w1, w2, w3, s20, s21, s22, s23);
  if constexpr (kRows > 2) AddFloats(LoadFloats<kWhole>(d, x.row[3] + i, left), w0, w1, w2, w3, s30, s31, s32, s33);
}

// Row o of W and row 0 of x.
template <typename W>
HWY_INLINE VF FloatRow(const FourRows<float>& x, const FourRows<W>& w, size_t o, size_t in) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= in; i += lanes) {
    sum = hn::MulAdd(LoadFloats<true>(d, x.row[0] + i, lanes), LoadFloats<true>(d, w.row[o] + i, lanes), sum);
  }
  if (i < in) sum = hn::MulAdd(LoadFloats<false>(d, x.row[0] + i, in - i), LoadFloats<false>(d, w.row[o] + i, in - i), sum);
  return sum;
}

template <size_t kRows, typename W>
HWY_NOINLINE void FloatTile(size_t in, const FourRows<float>& x, const FourRows<W>& w, const float* bias, const Tile& tile,
                            float* y, size_t y_stride) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF s00 = hn::Zero(d), s01 = s00, s02 = s00, s03 = s00, s10 = s00, s11 = s00, s12 = s00, s13 = s00;
  VF s20 = s00, s21 = s00, s22 = s00, s23 = s00, s30 = s00, s31 = s00, s32 = s00, s33 = s00;
  if (kRows == 1 && kOneRowInOrder && tile.r == 0) {  // behind other rows, the weights are in a cache
    s00 = FloatRow(x, w, 0, in);
    s01 = FloatRow(x, w, 1, in);
    s02 = FloatRow(x, w, 2, in);
    s03 = FloatRow(x, w, 3, in);
  } else {
    size_t i = 0;
    for (; i + lanes <= in; i += lanes) {
      PrefetchNext(tile, i / lanes);
      FloatStep<kRows, true>(x, w, i, lanes, s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33);
    }
    if (i < in) {
      FloatStep<kRows, false>(x, w, i, in - i, s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33);
    }
  }
  const auto put = [&](size_t row, VTile sums) HWY_ATTR {
    if (row < tile.rows) StoreOutputs(sums, bias, tile.outputs, y + row * y_stride);
  };
  put(0, SumsOfFour(d, s00, s01, s02, s03));
  if constexpr (kRows > 1) put(1, SumsOfFour(d, s10, s11, s12, s13));
  if constexpr (kRows > 2) put(2, SumsOfFour(d, s20, s21, s22, s23));
  if constexpr (kRows > 2) put(3, SumsOfFour(d, s30, s31, s32, s33));
}

template <typename W>
void DenseFloat(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const W* weight, const float* bias, float* y,
                size_t y_stride) {
  ForEachTile(rows, out, weight, in, hn::Lanes(DF()), [=](const Tile& tile) HWY_ATTR {
    const FourRows<float> from(x + tile.r * x_stride, x_stride, tile.rows);
    const FourRows<W> w(weight + tile.o * in, in, tile.outputs);
    const float* b = bias == nullptr ? nullptr : bias + tile.o;
    float* to = y + tile.r * y_stride + tile.o;
    tile.rows == 1 ? FloatTile<1>(in, from, w, b, tile, to, y_stride) : FloatTile<kTileRows>(in, from, w, b, tile, to, y_stride);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_DENSE_FLOAT_INL_H_
