// One pass over a state: write a rank-one term, and read what is then there. The decode step of the linear state, and the value
// half of the step of slot memory.
#if defined(TARN_KERNELS_ATTENTION_RANK_ONE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_ATTENTION_RANK_ONE_INL_H_
#undef TARN_KERNELS_ATTENTION_RANK_ONE_INL_H_
#else
#define TARN_KERNELS_ATTENTION_RANK_ONE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// For every row r:  S_r <- decay_r*S_r + write_r*(v_scale*v),  o_g += read_g[r]*S_r.
struct RankOneArgs {
  size_t rows, cols, queries;
  const float* decay;  // row r's at decay[r * decay_step]
  size_t decay_step;   // 0: one for all rows
  bool decays;         // false: every decay is 1
  const float* write;  // [rows]
  const float* v;      // [cols]
  float v_scale;
  const float* read;  // [queries, rows], read_stride apart
  size_t read_stride;
  float* state;  // [rows, cols]
  float* o;      // [queries, cols], o_stride apart
  size_t o_stride;
  bool accumulate;  // o goes on with the sums that it holds: rows that come in blocks
};

enum class Pass { kRead, kAdd, kDecay };  // what happens to the state on the way: nothing, += write x v, or the whole update

// Rows that are in work at a time. A core that runs instructions in order waits for every step of load, update, store and read,
// unless another row's stands between. Cores elsewhere find the next row by themselves, or have no registers for it.
constexpr size_t kRankOneRows = HWY_ARCH_ARM_A64 ? 2 : 1;

// kVectors (1 or 4) vectors of one row, of which those that a tile does not have cost nothing. Only the last vector of a row is
// masked, and then it has `count` columns.
template <size_t kVectors, bool kMasked>
HWY_INLINE void LoadCells(const float* cell, size_t count, VF& s0, VF& s1, VF& s2, VF& s3) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  s0 = kMasked ? hn::LoadN(d, cell, count) : hn::LoadU(d, cell);
  if constexpr (kVectors > 1) {
    s1 = hn::LoadU(d, cell + lanes);
    s2 = hn::LoadU(d, cell + 2 * lanes);
    s3 = hn::LoadU(d, cell + 3 * lanes);
  }
}

template <size_t kVectors, bool kMasked>
HWY_INLINE void StoreCells(VF s0, VF s1, VF s2, VF s3, float* cell, size_t count) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  if constexpr (kMasked) {
    hn::StoreN(s0, d, cell, count);
  } else {
    hn::StoreU(s0, d, cell);
  }
  if constexpr (kVectors > 1) {
    hn::StoreU(s1, d, cell + lanes);
    hn::StoreU(s2, d, cell + 2 * lanes);
    hn::StoreU(s3, d, cell + 3 * lanes);
  }
}

// x <- factor * x.
template <size_t kVectors>
HWY_INLINE void ScaleCells(VF factor, VF& x0, VF& x1, VF& x2, VF& x3) {
  x0 = hn::Mul(factor, x0);
  if constexpr (kVectors > 1) {
    x1 = hn::Mul(factor, x1);
    x2 = hn::Mul(factor, x2);
    x3 = hn::Mul(factor, x3);
  }
}

// y <- y + factor * x.
template <size_t kVectors>
HWY_INLINE void AddCells(VF factor, VF x0, VF x1, VF x2, VF x3, VF& y0, VF& y1, VF& y2, VF& y3) {
  y0 = hn::MulAdd(factor, x0, y0);
  if constexpr (kVectors > 1) {
    y1 = hn::MulAdd(factor, x1, y1);
    y2 = hn::MulAdd(factor, x2, y2);
    y3 = hn::MulAdd(factor, x3, y3);
  }
}

// Row r: what happens to it on the way.
template <Pass kPass, size_t kVectors>
HWY_INLINE void UpdateCells(const float* decay, const float* write, VF v0, VF v1, VF v2, VF v3, VF& s0, VF& s1, VF& s2, VF& s3) {
  const DF d;
  if constexpr (kPass == Pass::kDecay) ScaleCells<kVectors>(hn::Set(d, *decay), s0, s1, s2, s3);
  if constexpr (kPass != Pass::kRead) AddCells<kVectors>(hn::Set(d, *write), v0, v1, v2, v3, s0, s1, s2, s3);
}

// All rows of a tile's columns, for the queries g and g + 1; v and o stay in registers.
template <Pass kPass, size_t kQueries, size_t kVectors, bool kMasked>
HWY_INLINE void RankOneTile(const RankOneArgs& a, size_t g, size_t col, size_t count) {
  const DF d;
  const VF zero = hn::Zero(d);
  VF v0 = zero, v1 = zero, v2 = zero, v3 = zero;
  LoadCells<kVectors, kMasked>(a.v + col, count, v0, v1, v2, v3);
  ScaleCells<kVectors>(hn::Set(d, a.v_scale), v0, v1, v2, v3);
  VF o0 = zero, o1 = zero, o2 = zero, o3 = zero, p0 = zero, p1 = zero, p2 = zero, p3 = zero;
  // Copies: what is stored below might be a field of `a`, as far as the compiler knows.
  const size_t rows = a.rows, cols = a.cols, decay_step = a.decay_step;
  const float *decay = a.decay, *write = a.write;
  const float *read0 = a.read + g * a.read_stride, *read1 = kQueries > 1 ? read0 + a.read_stride : read0;
  float *to0 = a.o + g * a.o_stride + col, *to1 = to0 + a.o_stride;
  if (a.accumulate) {
    LoadCells<kVectors, kMasked>(to0, count, o0, o1, o2, o3);
    if constexpr (kQueries > 1) LoadCells<kVectors, kMasked>(to1, count, p0, p1, p2, p3);
  }
  float* HWY_RESTRICT cell = a.state + col;
  size_t left = rows;
  if constexpr (kRankOneRows > 1) {
    for (; left >= 2; left -= 2, cell += 2 * cols, decay += 2 * decay_step, write += 2, read0 += 2, read1 += 2) {
      VF s0 = zero, s1 = zero, s2 = zero, s3 = zero, t0 = zero, t1 = zero, t2 = zero, t3 = zero;
      LoadCells<kVectors, kMasked>(cell, count, s0, s1, s2, s3);
      LoadCells<kVectors, kMasked>(cell + cols, count, t0, t1, t2, t3);
      UpdateCells<kPass, kVectors>(decay, write, v0, v1, v2, v3, s0, s1, s2, s3);
      UpdateCells<kPass, kVectors>(decay + decay_step, write + 1, v0, v1, v2, v3, t0, t1, t2, t3);
      AddCells<kVectors>(hn::Set(d, read0[0]), s0, s1, s2, s3, o0, o1, o2, o3);
      AddCells<kVectors>(hn::Set(d, read0[1]), t0, t1, t2, t3, o0, o1, o2, o3);
      if constexpr (kQueries > 1) AddCells<kVectors>(hn::Set(d, read1[0]), s0, s1, s2, s3, p0, p1, p2, p3);
      if constexpr (kQueries > 1) AddCells<kVectors>(hn::Set(d, read1[1]), t0, t1, t2, t3, p0, p1, p2, p3);
      if constexpr (kPass != Pass::kRead) StoreCells<kVectors, kMasked>(s0, s1, s2, s3, cell, count);
      if constexpr (kPass != Pass::kRead) StoreCells<kVectors, kMasked>(t0, t1, t2, t3, cell + cols, count);
    }
  }
  for (; left != 0; --left, cell += cols, decay += decay_step, ++write, ++read0, ++read1) {
    VF s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    LoadCells<kVectors, kMasked>(cell, count, s0, s1, s2, s3);
    UpdateCells<kPass, kVectors>(decay, write, v0, v1, v2, v3, s0, s1, s2, s3);
    AddCells<kVectors>(hn::Set(d, *read0), s0, s1, s2, s3, o0, o1, o2, o3);
    if constexpr (kQueries > 1) AddCells<kVectors>(hn::Set(d, *read1), s0, s1, s2, s3, p0, p1, p2, p3);
    if constexpr (kPass != Pass::kRead) StoreCells<kVectors, kMasked>(s0, s1, s2, s3, cell, count);
  }
  StoreCells<kVectors, kMasked>(o0, o1, o2, o3, to0, count);
  if constexpr (kQueries > 1) StoreCells<kVectors, kMasked>(p0, p1, p2, p3, to1, count);
}

// The first two queries read while the state is written; further pairs read the tile again, which is then in the first cache.
template <Pass kPass, size_t kVectors, bool kMasked>
HWY_INLINE void RankOneColumns(const RankOneArgs& a, size_t col, size_t count) {
  if (a.queries == 1) return RankOneTile<kPass, 1, kVectors, kMasked>(a, 0, col, count);
  RankOneTile<kPass, 2, kVectors, kMasked>(a, 0, col, count);
  size_t g = 2;
  for (; g + 2 <= a.queries; g += 2) RankOneTile<Pass::kRead, 2, kVectors, kMasked>(a, g, col, count);
  if (g < a.queries) RankOneTile<Pass::kRead, 1, kVectors, kMasked>(a, g, col, count);
}

template <Pass kPass>
HWY_INLINE void RankOneRows(const RankOneArgs& a) {
  const size_t lanes = hn::Lanes(DF());
  size_t col = 0;
  for (; col + 4 * lanes <= a.cols; col += 4 * lanes) RankOneColumns<kPass, 4, false>(a, col, 0);
  for (; col + lanes <= a.cols; col += lanes) RankOneColumns<kPass, 1, false>(a, col, 0);
  if (col < a.cols) RankOneColumns<kPass, 1, true>(a, col, a.cols - col);
}

HWY_INLINE void RankOneUpdateAndRead(const RankOneArgs& a) {
  if (a.decays) {
    RankOneRows<Pass::kDecay>(a);
  } else {
    RankOneRows<Pass::kAdd>(a);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_ATTENTION_RANK_ONE_INL_H_
