// Dense layers for where XNNPACK is not. A product is a set of dot products over the rows of W, which is read once, in order.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/portable.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/groups.h"
#include "kernels/reference/reference.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Rows x and x2 against four rows of W, one sum per product. Each sum's order does not depend on its neighbours.
template <size_t kRows, size_t kOut>
HWY_INLINE void DotBlock(size_t in, const float* x, const float* x2, const float* w, const float* bias, float* y, float* y2) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const float* w1 = w + (kOut > 1 ? in : 0);
  const float* w2 = w + (kOut > 1 ? 2 * in : 0);
  const float* w3 = w + (kOut > 1 ? 3 * in : 0);
  VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  for (size_t i = 0; i < in; i += lanes) {
    const size_t left = in - i;
    const bool whole = left >= lanes;
    const auto load = [d, i, left, whole](const float* p)
                          HWY_ATTR { return whole ? hn::LoadU(d, p + i) : hn::LoadN(d, p + i, left); };
    const VF vx = load(x);
    const VF vx2 = kRows > 1 ? load(x2) : vx;
    const VF v0 = load(w);
    s0 = hn::MulAdd(vx, v0, s0);
    if constexpr (kRows > 1) t0 = hn::MulAdd(vx2, v0, t0);
    if constexpr (kOut > 1) {
      const VF v1 = load(w1), v2 = load(w2), v3 = load(w3);
      s1 = hn::MulAdd(vx, v1, s1);
      s2 = hn::MulAdd(vx, v2, s2);
      s3 = hn::MulAdd(vx, v3, s3);
      if constexpr (kRows > 1) t1 = hn::MulAdd(vx2, v1, t1);
      if constexpr (kRows > 1) t2 = hn::MulAdd(vx2, v2, t2);
      if constexpr (kRows > 1) t3 = hn::MulAdd(vx2, v3, t3);
    }
  }
  const auto put = [d, bias](VF sum, size_t o, float* to)
                       HWY_ATTR { to[o] = hn::ReduceSum(d, sum) + (bias == nullptr ? 0.0f : bias[o]); };
  put(s0, 0, y);
  if constexpr (kRows > 1) put(t0, 0, y2);
  if constexpr (kOut > 1) {
    put(s1, 1, y);
    put(s2, 2, y);
    put(s3, 3, y);
    if constexpr (kRows > 1) put(t1, 1, y2);
    if constexpr (kRows > 1) put(t2, 2, y2);
    if constexpr (kRows > 1) put(t3, 3, y2);
  }
}

void DenseF32(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const float* weight, const float* bias, float* y,
              size_t y_stride) {
  for (size_t o = 0; o < out;) {
    const bool four = o + 4 <= out;
    const float* w = weight + o * in;
    const float* b = bias == nullptr ? nullptr : bias + o;
    for (size_t r = 0; r < rows; r += 2) {
      const float* from = x + r * x_stride;
      float* to = y + r * y_stride + o;
      if (r + 1 < rows) {
        four ? DotBlock<2, 4>(in, from, from + x_stride, w, b, to, to + y_stride)
             : DotBlock<2, 1>(in, from, from + x_stride, w, b, to, to + y_stride);
      } else {
        four ? DotBlock<1, 4>(in, from, from, w, b, to, to) : DotBlock<1, 1>(in, from, from, w, b, to, to);
      }
    }
    o += four ? 4 : 1;
  }
}

// The integer kernels need vectors of several types side by side, which the scalar target does not have: there the reference, whose
// integer loops are as good, stays.
#if HWY_TARGET != HWY_SCALAR

// Smallest and largest of a row and 0.
HWY_INLINE void Range(size_t n, const float* x, float& low, float& high) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF bottom = hn::Zero(d), top = bottom;
  for (size_t i = 0; i < n; i += lanes) {
    const VF v = hn::LoadN(d, x + i, n - i);  // zeros beyond the row are in the range anyway
    bottom = hn::Min(bottom, v);
    top = hn::Max(top, v);
  }
  low = hn::ReduceMin(d, bottom);
  high = hn::ReduceMax(d, top);
}

void QuantizeQd8(size_t n, const float* x, int8_t* q, float* scale, int32_t* zero_point) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int16_t, DF> d16;
  const size_t lanes = hn::Lanes(d);
  float low, high;
  Range(n, x, low, high);
  const reference::Qd8 p = reference::ChooseQd8(low, high);
  const VF inverse = hn::Set(d, p.inverse);
  const VF zero = hn::Set(d, static_cast<float>(p.zero));
  for (size_t i = 0; i < n; i += lanes) {
    const VF scaled = hn::Add(hn::Round(hn::Mul(hn::LoadN(d, x + i, n - i), inverse)), zero);
    const VF clamped = hn::Min(hn::Max(scaled, hn::Set(d, -128.0f)), hn::Set(d, 127.0f));
    const auto rounded = hn::NearestInt(clamped);
    hn::StoreN(hn::DemoteTo(d8, hn::DemoteTo(d16, rounded)), d8, q + i, n - i);
  }
  *scale = p.scale;
  *zero_point = p.zero;
}

// q - zero_point and w fit in i16, their pairwise sums of products in i32.
void DenseQd8Qc8w(size_t in, size_t out, const int8_t* q, float scale, int32_t zero_point, const int8_t* weight,
                  const float* weight_scale, const float* bias, float* y) {
  const hn::ScalableTag<int32_t> d32;
  const hn::Repartition<int16_t, decltype(d32)> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const size_t lanes = hn::Lanes(d16);
  const auto zero = hn::Set(d16, static_cast<int16_t>(zero_point));
  for (size_t o = 0; o < out;) {
    const bool four = o + 4 <= out;
    const int8_t* w = weight + o * in;
    const size_t next = four ? in : 0;
    auto s0 = hn::Zero(d32), s1 = s0, s2 = s0, s3 = s0;
    for (size_t i = 0; i < in; i += lanes) {
      const size_t left = in - i;
      const bool whole = left >= lanes;
      const auto load = [d8, d16, i, left, whole](const int8_t* p) HWY_ATTR {
        return hn::PromoteTo(d16, whole ? hn::LoadU(d8, p + i) : hn::LoadN(d8, p + i, left));  // 0 weights beyond the row
      };
      const auto x = hn::Sub(load(q), zero);
      s0 = hn::Add(s0, hn::WidenMulPairwiseAdd(d32, x, load(w)));
      if (!four) continue;
      s1 = hn::Add(s1, hn::WidenMulPairwiseAdd(d32, x, load(w + next)));
      s2 = hn::Add(s2, hn::WidenMulPairwiseAdd(d32, x, load(w + 2 * next)));
      s3 = hn::Add(s3, hn::WidenMulPairwiseAdd(d32, x, load(w + 3 * next)));
    }
    const auto put = [&](size_t k, int32_t sum) {
      y[o + k] = static_cast<float>(sum) * (scale * weight_scale[o + k]) + (bias == nullptr ? 0.0f : bias[o + k]);
    };
    put(0, hn::ReduceSum(d32, s0));
    if (four) {
      put(1, hn::ReduceSum(d32, s1));
      put(2, hn::ReduceSum(d32, s2));
      put(3, hn::ReduceSum(d32, s3));
    }
    o += four ? 4 : 1;
  }
}

#endif  // HWY_TARGET != HWY_SCALAR

void FillDense(Kernels& table) {
  table.dense_f32 = DenseF32;
#if HWY_TARGET != HWY_SCALAR
  table.quantize_qd8 = QuantizeQd8;
  table.dense_qd8_qc8w = DenseQd8Qc8w;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tarn {
HWY_EXPORT(FillDense);
void FillDense(int64_t target, Kernels& table) { HWY_DISPATCH_TABLE(FillDense)[TargetIndex(target)](table); }
}  // namespace tarn
#endif
