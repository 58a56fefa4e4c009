// Dense layers with int3 and int2 weights on rows quantized to u8. Weights are multiplied as w + m, from 0 to 7, where m is
// PlaneOffset(), and sum (q - Z) s w is made as sum s (sum q (w + m) - m sum q) - Z sum s w, where the inner sums go over a block
// and are exact. The 8 weights of a byte position are unpacked in four pairs.
//
// Rows where the file has them (core/planes.h): a lane of 32 bits of the planes is a block. Panels (panels.h): a lane is an
// output.
#if defined(TARN_KERNELS_DENSE_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_PLANES_INL_H_
#undef TARN_KERNELS_DENSE_PLANES_INL_H_
#else
#define TARN_KERNELS_DENSE_PLANES_INL_H_
#endif

#include <cstring>

#include "core/dtype.h"
#include "core/planes.h"
#include "kernels/dense/int4-inl.h"
#include "kernels/dense/panels.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Bytes with their bits moved down, or up where kShift < 0. The shift is that of lanes of 16 bits, which all CPUs have: what comes
// from the neighbour is to be cut off.
template <int kShift>
HWY_INLINE VNibbles Moved(VNibbles v) {
  const hn::Repartition<uint16_t, DNibbles> d16;
  if constexpr (kShift > 0) return hn::BitCast(DNibbles(), hn::ShiftRight<kShift>(hn::BitCast(d16, v)));
  if constexpr (kShift < 0) return hn::BitCast(DNibbles(), hn::ShiftLeft<-kShift>(hn::BitCast(d16, v)));
  return v;
}

template <uint8_t kMask>
HWY_INLINE VInt4 Bits(VNibbles v) {
  return hn::BitCast(DInt4(), hn::And(v, hn::Set(DNibbles(), kMask)));
}

// Weights of int3 that stand in two planes.
template <int kHighBit>
HWY_INLINE VInt4 RestOfInt3(VNibbles plane, VNibbles last) {
  const VNibbles three = hn::Set(DNibbles(), uint8_t{3});
  return Bits<7>(hn::BitwiseIfThenElse(three, Moved<6>(plane), Moved<kHighBit - 2>(last)));
}

// Pair kPair of the four pairs of weights, each w + PlaneOffset(kBits), in planes a, b and, of int3, c.
template <unsigned kBits, size_t kPair>
HWY_INLINE void UnpackPair(VNibbles a, VNibbles b, [[maybe_unused]] VNibbles c, VInt4& w0, VInt4& w1) {
  const VNibbles plane = kBits == 2 ? (kPair < 2 ? a : b) : (kPair == 0 ? a : kPair == 1 ? b : c);
  if constexpr (kBits == 2) {
    w0 = Bits<6>(Moved<static_cast<int>(kPair % 2 * 4) - 1>(plane));  // twice the two bits
    w1 = Bits<6>(Moved<kPair % 2 * 4 + 1>(plane));
  } else if constexpr (kPair < 3) {
    w0 = Bits<7>(plane);
    w1 = Bits<7>(Moved<3>(plane));
  } else {
    w0 = RestOfInt3<6>(a, c);
    w1 = RestOfInt3<7>(b, c);
  }
}

// `sums` and those of the products of each 4 bytes, of two pairs. Lanes are blocks or outputs, so each takes its own 4 bytes, where
// SumsOfProducts() takes any of a vector on some CPUs.
HWY_INLINE VBlocks AddPair(VX4 x, VInt4 w, VX4 x2, VInt4 w2, VBlocks sums) {
#if HWY_ARCH_ARM && !HWY_HAVE_SCALABLE
  const hn::Repartition<int16_t, DBlocks> d16;  // 4 * 128 * 7 < 2^15
  const auto low = hn::MulAdd(hn::PromoteLowerTo(d16, x2), hn::PromoteLowerTo(d16, w2),
                              hn::Mul(hn::PromoteLowerTo(d16, x), hn::PromoteLowerTo(d16, w)));
  const auto high = hn::MulAdd(hn::PromoteUpperTo(d16, x2), hn::PromoteUpperTo(d16, w2),
                               hn::Mul(hn::PromoteUpperTo(d16, x), hn::PromoteUpperTo(d16, w)));
  const auto twos = hn::Add(hn::ConcatEven(d16, high, low), hn::ConcatOdd(d16, high, low));
  return hn::Add(sums, hn::SumsOf2(twos));
#else
  return hn::Add(sums, SumsOfProducts(x, w, x2, w2));
#endif
}

// bf16 in consecutive lanes.
HWY_INLINE VBlocksF ScalesOf(hn::Vec<hn::Rebind<uint16_t, DBlocks>> bf16) {
  return hn::BitCast(DBlocksF(), hn::ShiftLeft<16>(hn::PromoteTo(DBlocks(), bf16)));
}

// What makes of -PlaneOffset sum q that of q - kX8Moved.
constexpr int32_t MovedSum(unsigned bits) { return PlaneOffset(bits) * static_cast<int32_t>(kScaleBlock) * kX8Moved; }

// ---- Rows ----

struct PlaneRow {
  const uint8_t* w;
  const uint16_t* scales;
};

// `bytes` bytes of each plane of a row of W, from byte i on, times a row of x; z: the weights alone.
template <unsigned kBits, bool kWhole>
HWY_INLINE void RowStep(const PlaneArgs& a, const uint8_t* q, const int32_t* q_sums, PlaneRow row, size_t i, size_t bytes,
                        VBlocksF& z, VBlocksF& sum) {
  const DNibbles d;
  const DX4 dx;
  const DBlocks di;
  const DBlocksF df;
  const size_t part = a.in / 8;
  const auto x = [&](size_t p) HWY_ATTR { return LoadX8<kWhole>(dx, q + p * part + i, bytes); };
  const VNibbles p0 = LoadWholeOrPadded<kWhole>(d, row.w + i, bytes);
  const VNibbles p1 = LoadWholeOrPadded<kWhole>(d, row.w + part + i, bytes);
  VNibbles p2 = p1;
  if constexpr (kBits == 3) p2 = LoadWholeOrPadded<kWhole>(d, row.w + 2 * part + i, bytes);
  VBlocks sums = hn::Add(LoadWholeOrPadded<kWhole>(di, q_sums + i / 4, bytes / 4), hn::Set(di, MovedSum(kBits)));
  VInt4 w0, w1;
  UnpackPair<kBits, 0>(p0, p1, p2, w0, w1);
  VInt4 all = hn::Add(w0, w1);
  sums = AddPair(x(0), w0, x(1), w1, sums);
  UnpackPair<kBits, 1>(p0, p1, p2, w0, w1);
  all = hn::Add(all, hn::Add(w0, w1));
  sums = AddPair(x(2), w0, x(3), w1, sums);
  UnpackPair<kBits, 2>(p0, p1, p2, w0, w1);
  all = hn::Add(all, hn::Add(w0, w1));
  sums = AddPair(x(4), w0, x(5), w1, sums);
  UnpackPair<kBits, 3>(p0, p1, p2, w0, w1);
  all = hn::Add(all, hn::Add(w0, w1));
  sums = AddPair(x(6), w0, x(7), w1, sums);
  const hn::Rebind<uint16_t, DBlocks> d16;
  const VBlocksF scale = ScalesOf(LoadWholeOrPadded<kWhole>(d16, row.scales + i / 4, bytes / 4));
  const VBlocks weights = hn::Sub(SumsOfBytes(all), hn::Set(di, PlaneOffset(kBits) * static_cast<int32_t>(kScaleBlock)));
  z = hn::MulAdd(hn::ConvertTo(df, weights), scale, z);
  sum = hn::MulAdd(hn::ConvertTo(df, sums), scale, sum);
}

// The last step of a row is long code on CPUs that cannot load a part of a vector: it is there once.
template <unsigned kBits>
HWY_NOINLINE void LastRowStep(const PlaneArgs& a, const uint8_t* q, const int32_t* q_sums, PlaneRow row, size_t i, VBlocksF& z,
                              VBlocksF& sum) {
  RowStep<kBits, false>(a, q, q_sums, row, i, a.in / 8 - i, z, sum);
}

// By copies: sums whose address is taken would be kept in memory in every step.
template <unsigned kBits>
HWY_INLINE void AddLastStep(const PlaneArgs& a, const uint8_t* q, const int32_t* q_sums, PlaneRow row, size_t i, VBlocksF& z,
                            VBlocksF& sum) {
  VBlocksF last_z = z, last_sum = sum;
  LastRowStep<kBits>(a, q, q_sums, row, i, last_z, last_sum);
  z = last_z;
  sum = last_sum;
}

// Four outputs of one row of x.
template <unsigned kBits>
HWY_NOINLINE void PlaneTile(const PlaneArgs& a, const Tile& tile, size_t r) {
  const DBlocksF d;
  const DTile dt;
  const size_t lanes = hn::Lanes(DNibbles()), end = a.in / 8, row_bytes = PlaneRowBytes(kBits, a.in), blocks = a.in / kScaleBlock;
  const FourRows<uint8_t> w(a.weight + tile.o * row_bytes, row_bytes, tile.outputs);
  const FourRows<uint16_t> scales(a.block_scales + tile.o * blocks, blocks, tile.outputs);
  const uint8_t* q = a.q + r * a.in;
  const int32_t* q_sums = a.q_sums + r * blocks;
  VBlocksF z0 = hn::Zero(d), z1 = z0, z2 = z0, z3 = z0, s0 = z0, s1 = z0, s2 = z0, s3 = z0;
  const PlaneRow w0{w.row[0], scales.row[0]}, w1{w.row[1], scales.row[1]};
  const PlaneRow w2{w.row[2], scales.row[2]}, w3{w.row[3], scales.row[3]};
  size_t i = 0;
  for (; i + lanes <= end; i += lanes) {
    PrefetchNext(tile, i / lanes);
    RowStep<kBits, true>(a, q, q_sums, w0, i, lanes, z0, s0);
    RowStep<kBits, true>(a, q, q_sums, w1, i, lanes, z1, s1);
    RowStep<kBits, true>(a, q, q_sums, w2, i, lanes, z2, s2);
    RowStep<kBits, true>(a, q, q_sums, w3, i, lanes, z3, s3);
  }
  if (i < end) {
    AddLastStep<kBits>(a, q, q_sums, w0, i, z0, s0);
    AddLastStep<kBits>(a, q, q_sums, w1, i, z1, s1);
    AddLastStep<kBits>(a, q, q_sums, w2, i, z2, s2);
    AddLastStep<kBits>(a, q, q_sums, w3, i, z3, s3);
  }
  const VTile zero_point = hn::Set(dt, static_cast<float>(a.params[r].zero_point - kX8Moved));
  const VTile sums = hn::NegMulAdd(zero_point, SumsOfFour(d, z0, z1, z2, z3), SumsOfFour(d, s0, s1, s2, s3));
  StoreOutputs(hn::Mul(sums, hn::Set(dt, a.params[r].scale)), a.bias == nullptr ? nullptr : a.bias + tile.o, tile.outputs,
               a.y + r * a.y_stride + tile.o);
}

inline void DenseQdu8Planes(const PlaneArgs& a) {
  ForEachTile(a.rows, a.out, a.weight, PlaneRowBytes(a.bits, a.in), a.bits * hn::Lanes(DNibbles()), [&](const Tile& tile) HWY_ATTR {
    Tile one = tile;
    for (size_t r = 0; r < tile.rows; ++r, one.next_step_bytes = 0) {
      a.bits == 3 ? PlaneTile<3>(a, one, tile.r + r) : PlaneTile<2>(a, one, tile.r + r);
    }
  });
}

// ---- Panels ----

// How far ahead of what it needs a panel asks memory.
constexpr size_t kPanelAheadBytes = 8192;

// Four elements of a row of x in all lanes.
HWY_INLINE VX4 FourOfX(const uint8_t* x) {
  uint32_t four;
  std::memcpy(&four, x, sizeof(four));
  if constexpr (kX8Moved != 0) four ^= 0x80808080u;
  return hn::BitCast(DX4(), hn::Set(hn::RebindToUnsigned<DBlocks>(), four));
}

// What the sums of a row begin with.
template <unsigned kBits>
HWY_INLINE VBlocks FirstSum(const int32_t* q_sum) {
  return hn::Set(DBlocks(), *q_sum + MovedSum(kBits));
}

// Rows of a pass, from the first on; beyond the last one that one again, whose sums nobody stores.
struct PanelRows {
  FourRows<uint8_t> q;
  FourRows<int32_t> sums;
  size_t first, count;
};

// A pair of weights, for the elements from i on, times kRows rows.
template <size_t kRows>
HWY_INLINE void AddPairs(const PanelRows& rows, size_t i, VInt4 w0, VInt4 w1, VBlocks& s0, VBlocks& s1, VBlocks& s2, VBlocks& s3) {
  const auto& q = rows.q.row;
  s0 = AddPair(FourOfX(q[0] + i), w0, FourOfX(q[0] + i + 4), w1, s0);
  if constexpr (kRows > 1) s1 = AddPair(FourOfX(q[1] + i), w0, FourOfX(q[1] + i + 4), w1, s1);
  if constexpr (kRows > 2) s2 = AddPair(FourOfX(q[2] + i), w0, FourOfX(q[2] + i + 4), w1, s2);
  if constexpr (kRows > 2) s3 = AddPair(FourOfX(q[3] + i), w0, FourOfX(q[3] + i + 4), w1, s3);
}

// Those outputs whose weights begin `byte` bytes into each plane, of kRows rows.
template <unsigned kBits, size_t kRows>
HWY_INLINE void PanelPart(const PlaneArgs& a, const PanelRows& rows, size_t byte, bool prefetches) {
  const DNibbles d;
  const DBlocksF df;
  const hn::Rebind<uint16_t, DBlocks> d16;
  const size_t first = byte / 4;
  VBlocksF y0 = hn::Zero(df), y1 = y0, y2 = y0, y3 = y0;
  const uint8_t* block = a.weight + kPanelOutputs * sizeof(float);
  for (size_t i = 0, b = 0; i < a.in; i += kScaleBlock, ++b, block += PanelBlockBytes(kBits)) {
    for (size_t at = 0; prefetches && at < PanelBlockBytes(kBits); at += kLineBytes) hwy::Prefetch(block + kPanelAheadBytes + at);
    const VNibbles p0 = hn::LoadU(d, block + byte), p1 = hn::LoadU(d, block + kPanelPlaneBytes + byte);
    VNibbles p2 = p1;
    if constexpr (kBits == 3) p2 = hn::LoadU(d, block + 2 * kPanelPlaneBytes + byte);
    VBlocks s0 = FirstSum<kBits>(rows.sums.row[0] + b);
    VBlocks s1 = s0, s2 = s0, s3 = s0;
    if constexpr (kRows > 1) s1 = FirstSum<kBits>(rows.sums.row[1] + b);
    if constexpr (kRows > 2) s2 = FirstSum<kBits>(rows.sums.row[2] + b);
    if constexpr (kRows > 2) s3 = FirstSum<kBits>(rows.sums.row[3] + b);
    VInt4 w0, w1;
    UnpackPair<kBits, 0>(p0, p1, p2, w0, w1);
    AddPairs<kRows>(rows, i, w0, w1, s0, s1, s2, s3);
    UnpackPair<kBits, 1>(p0, p1, p2, w0, w1);
    AddPairs<kRows>(rows, i + 8, w0, w1, s0, s1, s2, s3);
    UnpackPair<kBits, 2>(p0, p1, p2, w0, w1);
    AddPairs<kRows>(rows, i + 16, w0, w1, s0, s1, s2, s3);
    UnpackPair<kBits, 3>(p0, p1, p2, w0, w1);
    AddPairs<kRows>(rows, i + 24, w0, w1, s0, s1, s2, s3);
    const VBlocksF scale = ScalesOf(hn::LoadU(d16, reinterpret_cast<const uint16_t*>(block + PanelScales(kBits)) + first));
    y0 = hn::MulAdd(hn::ConvertTo(df, s0), scale, y0);
    if constexpr (kRows > 1) y1 = hn::MulAdd(hn::ConvertTo(df, s1), scale, y1);
    if constexpr (kRows > 2) y2 = hn::MulAdd(hn::ConvertTo(df, s2), scale, y2);
    if constexpr (kRows > 2) y3 = hn::MulAdd(hn::ConvertTo(df, s3), scale, y3);
  }
  const size_t outputs = a.out - first;
  const auto put = [&](size_t row, VBlocksF y) HWY_ATTR {
    if (row >= rows.count) return;
    const Qdu8& params = a.params[rows.first + row];
    const VBlocksF zero_point = hn::Set(df, static_cast<float>(params.zero_point - kX8Moved));
    const VBlocksF weights = hn::LoadU(df, reinterpret_cast<const float*>(a.weight) + first);
    y = hn::Mul(hn::NegMulAdd(zero_point, weights, y), hn::Set(df, params.scale));
    if (a.bias != nullptr) y = hn::Add(y, hn::LoadN(df, a.bias + first, outputs));
    hn::StoreN(y, df, a.y + (rows.first + row) * a.y_stride + first, outputs);
  };
  put(0, y0);
  if constexpr (kRows > 1) put(1, y1);
  if constexpr (kRows > 2) put(2, y2);
  if constexpr (kRows > 2) put(3, y3);
}

template <unsigned kBits, size_t kRows>
HWY_NOINLINE void Panel(const PlaneArgs& a, const PanelRows& rows) {
  const size_t lanes = hn::Lanes(DNibbles());
  for (size_t byte = 0; byte / 4 < a.out; byte += lanes) PanelPart<kBits, kRows>(a, rows, byte, byte == 0 && rows.first == 0);
}

template <unsigned kBits>
HWY_INLINE void PanelPasses(const PlaneArgs& a) {
  const size_t blocks = a.in / kScaleBlock;
  for (size_t r = 0; r < a.rows; r += kTileRows) {
    const size_t count = std::min(a.rows - r, kTileRows);
    const PanelRows rows = {{a.q + r * a.in, a.in, count}, {a.q_sums + r * blocks, blocks, count}, r, count};
    count == 1 ? Panel<kBits, 1>(a, rows) : count == 2 ? Panel<kBits, 2>(a, rows) : Panel<kBits, kTileRows>(a, rows);
  }
}

inline void DenseQdu8Panel(const PlaneArgs& a) { a.bits == 3 ? PanelPasses<3>(a) : PanelPasses<2>(a); }

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_DENSE_PLANES_INL_H_
