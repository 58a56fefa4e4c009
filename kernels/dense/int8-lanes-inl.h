// Dense layers with int8 weights for many rows of x: a row in each lane. A lane keeps the sum of its row, so nothing is added
// across lanes at the end, and 4 weights, loaded into every lane, meet all rows at once:
//   sum[r] += x[r][4 k + 0..3] . w[4 k + 0..3]
// For x the rows stand side by side: [in / 4][kLaneRows][4]. Tiles (int8-inl.h) take a third longer on Zen 4 for 16 rows of 512
// inputs, and as long for 1,024. The bits are theirs: the bias is added to what was stored, so that no compiler makes one rounding
// of the two.
#if defined(TARN_KERNELS_DENSE_INT8_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_INT8_LANES_INL_H_
#undef TARN_KERNELS_DENSE_INT8_LANES_INL_H_
#else
#define TARN_KERNELS_DENSE_INT8_LANES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/dense/products-inl.h"
#include "kernels/dense/tile-inl.h"

// Vectors of 16 sums, and an instruction for their products.
#undef TARN_HAVE_INT8_LANES
#define TARN_HAVE_INT8_LANES (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL)

#if TARN_HAVE_INT8_LANES
HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

constexpr size_t kLaneRows = 16;
static_assert(hn::MaxLanes(DI32()) == kLaneRows, "a lane for each row");
// Fewer take as long as kLaneRows do, and tiles are faster for them.
constexpr size_t kLeastLaneRows = 9;
// With more inputs the first cache does not hold the rows.
constexpr size_t kMostLaneInputs = 1024;
// Rows of W in work at a time: their sums do not wait for one another, and they and those behind them lie in the first cache.
constexpr size_t kLaneOutputs = 8;
// Weights of each of them for which one line is asked for.
constexpr size_t kLineInputs = kLineBytes / kLaneOutputs;
// So many outputs of a row are stored at once, in whole lines: rows of y may lie a power of two apart, and then no cache keeps the
// lines of all of them until their next part comes.
constexpr size_t kStoredOutputs = 64;

constexpr bool FitsLanes(size_t rows, size_t in) {
  return rows >= kLeastLaneRows && in % kLineInputs == 0 && in <= kMostLaneInputs;
}

using FourInts = hn::CappedTag<int32_t, 4>;

// kLaneRows rows of x side by side; those beyond `count` are zero.
struct LaneRows {
  LaneRows(size_t count, size_t in, const uint8_t* rows, const Qdu8* params) {
    for (size_t r = 0; r < kLaneRows; ++r) {
      scale[r] = r < count ? params[r].scale : 0.0f;
      zero_point[r] = r < count ? params[r].zero_point : 0;
    }
    const DI32 d;
    const FourInts four;
    const size_t words = in / sizeof(int32_t), lanes = hn::Lanes(d);
    const auto load = [&](size_t r, size_t i) HWY_ATTR {
      if (r >= count) return hn::Zero(d);
      return hn::BitCast(d, hn::LoadN(DX8(), rows + r * in + 4 * i, in - 4 * i));
    };
    alignas(64) int32_t turned[kLaneRows][4];
    for (size_t i = 0; i < words; i += lanes) {
      const size_t left = std::min(lanes, words - i);
      for (size_t r = 0; r < kLaneRows; r += 4) {
        hn::StoreInterleaved4(load(r, i), load(r + 1, i), load(r + 2, i), load(r + 3, i), d, turned[0]);
        for (size_t k = 0; k < left; ++k) hn::StoreU(hn::Load(four, turned[k]), four, q + (i + k) * kLaneRows + r);
      }
    }
  }

  alignas(64) int32_t q[kMostLaneInputs / 4 * kLaneRows];  // 4 elements each
  alignas(64) float scale[kLaneRows];
  alignas(64) int32_t zero_point[kLaneRows];
};

// Outputs in work: rows of W from `weight` on, and what belongs to them.
struct LaneOutputs {
  size_t in, count;  // count <= kLaneOutputs
  const int8_t* weight;
  const float* scale;

  // Beyond the last row that one again, whose sums nobody stores.
  const int8_t* row(size_t o) const { return weight + std::min(o, count - 1) * in; }
};

// The sums of four rows of W.
HWY_INLINE void SumWeights(const LaneOutputs& w, size_t o, int32_t* sums) {
  const DI32 d;
  const DI8 d8;
  const int8_t *w0 = w.row(o), *w1 = w.row(o + 1), *w2 = w.row(o + 2), *w3 = w.row(o + 3);
  VI32 s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < w.in; i += hn::Lanes(d8)) {
    const size_t left = w.in - i;
    s0 = AddBytes(hn::LoadN(d8, w0 + i, left), s0);
    s1 = AddBytes(hn::LoadN(d8, w1 + i, left), s1);
    s2 = AddBytes(hn::LoadN(d8, w2 + i, left), s2);
    s3 = AddBytes(hn::LoadN(d8, w3 + i, left), s3);
  }
  hn::StoreU(SumsOfFour(d, s0, s1, s2, s3), FourInts(), sums);
}

// 4 weights in every lane.
HWY_INLINE VI8 LoadFour(const int8_t* w) {
  int32_t four;
  std::memcpy(&four, w, sizeof(four));
  return hn::BitCast(DI8(), hn::Set(DI32(), four));
}

// y [lane] = (sum - zero_point * weight_sum) * (scale of the row * scale of the output).
HWY_INLINE VF FinishLanes(VI32 sum, int32_t weight_sum, const LaneRows& x, const LaneOutputs& w, size_t o) {
  const DF d;
  const DI32 di;
  const VI32 shift = hn::Mul(hn::Load(di, x.zero_point), hn::Set(di, weight_sum));
  const VF scale = hn::Mul(hn::Load(d, x.scale), hn::Set(d, w.scale[std::min(o, w.count - 1)]));
  return hn::Mul(hn::ConvertTo(d, hn::Sub(sum, shift)), scale);
}

// y [kLaneOutputs / kTileOutputs][kLaneRows][kTileOutputs], without the bias. While it multiplies it asks for the rows of W behind
// these.
HWY_NOINLINE inline void MultiplyLanes(const LaneRows& x, const LaneOutputs& w, float* y) {
  const DF d;
  const int8_t *w0 = w.row(0), *w1 = w.row(1), *w2 = w.row(2), *w3 = w.row(3);
  const int8_t *w4 = w.row(4), *w5 = w.row(5), *w6 = w.row(6), *w7 = w.row(7);
  VI32 s0 = hn::Zero(DI32()), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  for (size_t i = 0; i < w.in; i += kLineInputs) {
    hwy::Prefetch(w.weight + kLaneOutputs * (w.in + i));
    for (size_t k = i; k < i + kLineInputs; k += 4) {
      const VX8 group = hn::BitCast(DX8(), hn::Load(DI32(), x.q + k / 4 * kLaneRows));
      s0 = AddProducts(group, LoadFour(w0 + k), s0);
      s1 = AddProducts(group, LoadFour(w1 + k), s1);
      s2 = AddProducts(group, LoadFour(w2 + k), s2);
      s3 = AddProducts(group, LoadFour(w3 + k), s3);
      s4 = AddProducts(group, LoadFour(w4 + k), s4);
      s5 = AddProducts(group, LoadFour(w5 + k), s5);
      s6 = AddProducts(group, LoadFour(w6 + k), s6);
      s7 = AddProducts(group, LoadFour(w7 + k), s7);
    }
  }
  int32_t sums[kLaneOutputs];
  SumWeights(w, 0, sums);
  SumWeights(w, 4, sums + 4);
  hn::StoreInterleaved4(FinishLanes(s0, sums[0], x, w, 0), FinishLanes(s1, sums[1], x, w, 1), FinishLanes(s2, sums[2], x, w, 2),
                        FinishLanes(s3, sums[3], x, w, 3), d, y);
  hn::StoreInterleaved4(FinishLanes(s4, sums[4], x, w, 4), FinishLanes(s5, sums[5], x, w, 5), FinishLanes(s6, sums[6], x, w, 6),
                        FinishLanes(s7, sums[7], x, w, 7), d, y + kTileOutputs * kLaneRows);
}

// As Kernels::dense_qdu8_qc8w, for rows <= kLaneRows.
inline void DenseLanes(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                       const float* weight_scale, const float* bias, float* y, size_t y_stride) {
  const DTile d;
  const LaneRows x(rows, in, q, params);
  alignas(64) float stored[kStoredOutputs / kTileOutputs][kLaneRows][kTileOutputs];
  for (size_t first = 0; first < out; first += kStoredOutputs) {
    const size_t count = std::min(out - first, kStoredOutputs);
    for (size_t o = first; o < first + count; o += kLaneOutputs) {
      const LaneOutputs w = {in, std::min(out - o, kLaneOutputs), weight + o * in, weight_scale + o};
      MultiplyLanes(x, w, stored[(o - first) / kTileOutputs][0]);
    }
    for (size_t r = 0; r < rows; ++r) {
      float* to = y + r * y_stride + first;
      for (size_t o = 0; o < count; o += kTileOutputs) {
        const float* biases = bias == nullptr ? nullptr : bias + first + o;
        StoreOutputs(hn::Load(d, stored[o / kTileOutputs][r]), biases, std::min(count - o, kTileOutputs), to + o);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();
#endif  // TARN_HAVE_INT8_LANES

#endif  // TARN_KERNELS_DENSE_INT8_LANES_INL_H_
