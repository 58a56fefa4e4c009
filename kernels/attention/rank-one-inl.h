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
  const float* read;  // [queries, rows]
  float* state;       // [rows, cols]
  float* o;           // [queries, cols], overwritten
};

enum class Pass { kRead, kAdd, kDecay };  // what happens to the state on the way: nothing, += write x v, or the whole update

// One vector of one row.
template <Pass kPass, size_t kQueries, bool kMasked>
HWY_INLINE void RankOneCell(float* HWY_RESTRICT cell, size_t count, VF decay, VF write, VF v, VF read0, VF read1, VF& o0, VF& o1) {
  const DF d;
  VF s = kMasked ? hn::LoadN(d, cell, count) : hn::LoadU(d, cell);
  if constexpr (kPass == Pass::kDecay) s = hn::Mul(decay, s);
  if constexpr (kPass != Pass::kRead) {
    s = hn::MulAdd(write, v, s);
    if constexpr (kMasked) {
      hn::StoreN(s, d, cell, count);
    } else {
      hn::StoreU(s, d, cell);
    }
  }
  o0 = hn::MulAdd(read0, s, o0);
  if constexpr (kQueries > 1) o1 = hn::MulAdd(read1, s, o1);
}

// All rows of kVectors (1 or 4) vectors of columns, for the queries g and g + 1; v and o stay in registers. Only the last vector of
// a row is masked, and then it has `count` columns.
template <Pass kPass, size_t kQueries, size_t kVectors, bool kMasked>
HWY_INLINE void RankOneTile(const RankOneArgs& a, size_t g, size_t col, size_t count) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const VF scale = hn::Set(d, a.v_scale);
  const VF v0 = hn::Mul(scale, kMasked ? hn::LoadN(d, a.v + col, count) : hn::LoadU(d, a.v + col));
  VF v1 = v0, v2 = v0, v3 = v0;
  if constexpr (kVectors > 1) {
    v1 = hn::Mul(scale, hn::LoadU(d, a.v + col + lanes));
    v2 = hn::Mul(scale, hn::LoadU(d, a.v + col + 2 * lanes));
    v3 = hn::Mul(scale, hn::LoadU(d, a.v + col + 3 * lanes));
  }
  VF o0 = hn::Zero(d), o1 = o0, o2 = o0, o3 = o0, p0 = o0, p1 = o0, p2 = o0, p3 = o0;
  const float* read = a.read + g * a.rows;
  float* HWY_RESTRICT cell = a.state + col;
  for (size_t r = 0; r < a.rows; ++r, cell += a.cols) {
    const VF decay = hn::Set(d, a.decay[r * a.decay_step]);
    const VF write = hn::Set(d, a.write[r]);
    const VF read0 = hn::Set(d, read[r]);
    const VF read1 = kQueries > 1 ? hn::Set(d, read[a.rows + r]) : read0;
    RankOneCell<kPass, kQueries, kMasked>(cell, count, decay, write, v0, read0, read1, o0, p0);
    if constexpr (kVectors > 1) {
      RankOneCell<kPass, kQueries, false>(cell + lanes, 0, decay, write, v1, read0, read1, o1, p1);
      RankOneCell<kPass, kQueries, false>(cell + 2 * lanes, 0, decay, write, v2, read0, read1, o2, p2);
      RankOneCell<kPass, kQueries, false>(cell + 3 * lanes, 0, decay, write, v3, read0, read1, o3, p3);
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    float* o = a.o + (g + q) * a.cols + col;
    if constexpr (kMasked) {
      hn::StoreN(q == 0 ? o0 : p0, d, o, count);
    } else {
      hn::StoreU(q == 0 ? o0 : p0, d, o);
    }
    if constexpr (kVectors > 1) {
      hn::StoreU(q == 0 ? o1 : p1, d, o + lanes);
      hn::StoreU(q == 0 ? o2 : p2, d, o + 2 * lanes);
      hn::StoreU(q == 0 ? o3 : p3, d, o + 3 * lanes);
    }
  }
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
