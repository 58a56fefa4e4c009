// Dense layers with int4 weights on rows quantized to u8. The low nibbles of a vector of weights meet the elements of even index of
// a row of x, the high ones those of odd index, and both come from where they stand side by side: nothing is shuffled. 16 bytes are
// a block; its sums of products are exact and take its scale as they become f32. As with int8, sum (q - Z) s w is made as
// sum q s w - Z sum s w, of which the second sum is the same for all rows of x.
#if defined(TARN_KERNELS_DENSE_INT4_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_DENSE_INT4_INL_H_
#undef TARN_KERNELS_DENSE_INT4_INL_H_
#else
#define TARN_KERNELS_DENSE_INT4_INL_H_
#endif

#include <cstring>

#include "core/dtype.h"
#include "kernels/dense/products-inl.h"
#include "kernels/dense/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Up to four blocks of 16 bytes: their scales fit 64 bits.
using DBlocks = hn::CappedTag<int32_t, 16>;
using VBlocks = hn::Vec<DBlocks>;
using DBlocksF = hn::RebindToFloat<DBlocks>;
using VBlocksF = hn::Vec<DBlocksF>;
using DNibbles = hn::Repartition<uint8_t, DBlocks>;
using VNibbles = hn::Vec<DNibbles>;
using DInt4 = hn::RebindToSigned<DNibbles>;
using VInt4 = hn::Vec<DInt4>;
using DX4 = hn::Repartition<hn::TFromD<DX8>, DBlocks>;
using VX4 = hn::Vec<DX4>;
constexpr size_t kBlockBytes = kScaleBlock / 2;

struct Int4Args {
  size_t half;  // of the inputs: bytes of a row of W, and where the elements of odd index begin in a row of x
  FourRows<uint8_t> x;
  FourRows<uint8_t> w;
  FourRows<uint16_t> scales;
  const Qdu8* params;  // of the rows of the tile
  const float* bias;   // of its outputs
  float* y;
  size_t y_stride;
};

// The sums of each 4 bytes of i8 in [-16, 56].
HWY_INLINE VBlocks SumsOfBytes(VInt4 w) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
  // Sums of two products fit i16. This is two instructions, where products of any i8 take nine.
  const hn::Repartition<int16_t, DBlocks> d16;
  const auto sums = hn::SatWidenMulPairwiseAdd(d16, hn::Set(DX4(), 1), w);
  return hn::WidenMulPairwiseAdd(DBlocks(), sums, hn::Set(d16, int16_t{1}));
#else
  return AddBytes(w, hn::Zero(DBlocks()));
#endif
}

// The sums of the products of each 4 bytes of x with i8 in [-8, 7], of two pairs. Also for planes-inl.h.
HWY_INLINE VBlocks SumsOfProducts(VX4 x, VInt4 w, VX4 x2, VInt4 w2) {
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
  // As i16 until four products are added: 4 * 255 * 8 < 2^15.
  const hn::Repartition<int16_t, DBlocks> d16;
  const auto sums = hn::Add(hn::SatWidenMulPairwiseAdd(d16, x, w), hn::SatWidenMulPairwiseAdd(d16, x2, w2));
  return hn::WidenMulPairwiseAdd(DBlocks(), sums, hn::Set(d16, int16_t{1}));
#elif HWY_ARCH_ARM && !HWY_HAVE_SCALABLE
  // The same: 4 * 128 * 8 < 2^15.
  const hn::Repartition<int16_t, DBlocks> d16;
  const auto low = hn::MulAdd(hn::PromoteLowerTo(d16, x2), hn::PromoteLowerTo(d16, w2),
                              hn::Mul(hn::PromoteLowerTo(d16, x), hn::PromoteLowerTo(d16, w)));
  const auto high = hn::MulAdd(hn::PromoteUpperTo(d16, x2), hn::PromoteUpperTo(d16, w2),
                               hn::Mul(hn::PromoteUpperTo(d16, x), hn::PromoteUpperTo(d16, w)));
  return hn::SumsOf2(hn::Add(low, high));
#else
  return AddProducts(x2, w2, AddProducts(x, w, hn::Zero(DBlocks())));
#endif
}

// Which bytes of the scales become the upper half of each lane of f32: the two of the lane's block.
HWY_INLINE VNibbles ScaleBytes() {
  const hn::RebindToUnsigned<DBlocks> d;
  const auto block = hn::ShiftRight<2>(hn::Iota(d, 0));
  return hn::BitCast(DNibbles(), hn::Add(hn::Set(d, 0x01008080u), hn::Mul(block, hn::Set(d, 0x02020000u))));
}

// The scales of the blocks in a vector of `bytes` of weights, in the lanes of their sums; 0 beyond the row.
HWY_INLINE VBlocksF LoadScales(const uint16_t* scales, size_t bytes, VNibbles which) {
  uint64_t bits = 0;
#if HWY_HAVE_SCALABLE
  // With a length that only the CPU knows, memcpy is a call.
  for (size_t block = bytes / kBlockBytes; block-- != 0;) bits = bits << 16 | scales[block];
#else
  std::memcpy(&bits, scales, bytes / kBlockBytes * sizeof(uint16_t));
#endif
  const hn::Repartition<uint64_t, DNibbles> d64;
  return hn::BitCast(DBlocksF(), hn::TableLookupBytesOr0(hn::BitCast(DNibbles(), hn::Set(d64, bits)), which));
}

// Weights of even and odd index times those of one row of x.
template <bool kWhole>
HWY_INLINE void AddInt4(const uint8_t* x, size_t half, size_t bytes, VInt4 even, VInt4 odd, VBlocksF scale, VBlocksF& sum) {
  const DX4 d;
  const VBlocks sums = SumsOfProducts(LoadX8<kWhole>(d, x, bytes), even, LoadX8<kWhole>(d, x + half, bytes), odd);
  sum = hn::MulAdd(hn::ConvertTo(DBlocksF(), sums), scale, sum);
}

// A vector of row o of W, `bytes` of it from byte i on, into its sums with all rows of x; z: with ones.
template <size_t kRows, bool kSumWeights, bool kWhole>
HWY_INLINE void Int4Step(const Int4Args& a, size_t o, size_t i, size_t bytes, VNibbles which, VBlocksF& z, VBlocksF& s0,
                         VBlocksF& s1, VBlocksF& s2, VBlocksF& s3) {
  const DNibbles d;
  const DInt4 d4;
  const VNibbles both = LoadWholeOrPadded<kWhole>(d, a.w.row[o] + i, bytes);
  const VInt4 even = hn::Sub(hn::BitCast(d4, hn::And(both, hn::Set(d, uint8_t{15}))), hn::Set(d4, int8_t{8}));
  const VInt4 odd = hn::Sub(hn::BitCast(d4, hn::ShiftRight<4>(both)), hn::Set(d4, int8_t{8}));
  const VBlocksF scale = LoadScales(a.scales.row[o] + i / kBlockBytes, bytes, which);
  if constexpr (kSumWeights) {
    z = hn::MulAdd(hn::ConvertTo(DBlocksF(), SumsOfBytes(hn::Add(even, odd))), scale, z);
  }
  AddInt4<kWhole>(a.x.row[0] + i, a.half, bytes, even, odd, scale, s0);
  if constexpr (kRows > 1) AddInt4<kWhole>(a.x.row[1] + i, a.half, bytes, even, odd, scale, s1);
  if constexpr (kRows > 2) AddInt4<kWhole>(a.x.row[2] + i, a.half, bytes, even, odd, scale, s2);
  if constexpr (kRows > 2) AddInt4<kWhole>(a.x.row[3] + i, a.half, bytes, even, odd, scale, s3);
}

// s<row of x><row of W>. `weight_sums` [kTileOutputs] is written with kSumWeights, else read.
template <size_t kRows, bool kSumWeights>
HWY_NOINLINE void Int4Tile(const Int4Args& a, const Tile& tile, float* weight_sums) {
  const DBlocksF d;
  const DTile dt;
  const size_t lanes = hn::Lanes(DNibbles());
  const VNibbles which = ScaleBytes();
  VBlocksF z0 = hn::Zero(d), z1 = z0, z2 = z0, z3 = z0;
  VBlocksF s00 = z0, s01 = z0, s02 = z0, s03 = z0, s10 = z0, s11 = z0, s12 = z0, s13 = z0;
  VBlocksF s20 = z0, s21 = z0, s22 = z0, s23 = z0, s30 = z0, s31 = z0, s32 = z0, s33 = z0;
  size_t i = 0;
  for (; i + lanes <= a.half; i += lanes) {
    PrefetchNext(tile, i / lanes);
    Int4Step<kRows, kSumWeights, true>(a, 0, i, lanes, which, z0, s00, s10, s20, s30);
    Int4Step<kRows, kSumWeights, true>(a, 1, i, lanes, which, z1, s01, s11, s21, s31);
    Int4Step<kRows, kSumWeights, true>(a, 2, i, lanes, which, z2, s02, s12, s22, s32);
    Int4Step<kRows, kSumWeights, true>(a, 3, i, lanes, which, z3, s03, s13, s23, s33);
  }
  if (i < a.half) {
    Int4Step<kRows, kSumWeights, false>(a, 0, i, a.half - i, which, z0, s00, s10, s20, s30);
    Int4Step<kRows, kSumWeights, false>(a, 1, i, a.half - i, which, z1, s01, s11, s21, s31);
    Int4Step<kRows, kSumWeights, false>(a, 2, i, a.half - i, which, z2, s02, s12, s22, s32);
    Int4Step<kRows, kSumWeights, false>(a, 3, i, a.half - i, which, z3, s03, s13, s23, s33);
  }
  if constexpr (kSumWeights) hn::StoreU(SumsOfFour(d, z0, z1, z2, z3), dt, weight_sums);
  const auto put = [&](size_t row, VTile sums) HWY_ATTR {
    if (row >= tile.rows) return;
    const VTile zero_point = hn::Set(dt, static_cast<float>(a.params[row].zero_point - kX8Moved));
    const VTile whole = hn::NegMulAdd(zero_point, hn::LoadU(dt, weight_sums), sums);
    StoreOutputs(hn::Mul(whole, hn::Set(dt, a.params[row].scale)), a.bias, tile.outputs, a.y + row * a.y_stride);
  };
  put(0, SumsOfFour(d, s00, s01, s02, s03));
  if constexpr (kRows > 1) put(1, SumsOfFour(d, s10, s11, s12, s13));
  if constexpr (kRows > 2) put(2, SumsOfFour(d, s20, s21, s22, s23));
  if constexpr (kRows > 2) put(3, SumsOfFour(d, s30, s31, s32, s33));
}

inline void DenseQdu8Qb4w(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const uint8_t* weight,
                          const uint16_t* block_scales, const float* bias, float* y, size_t y_stride) {
  const size_t half = in / 2, blocks = in / kScaleBlock;
  float weight_sums[kTileOutputs];
  ForEachTile(rows, out, weight, half, hn::Lanes(DNibbles()), [&](const Tile& tile) HWY_ATTR {
    const Int4Args args = {half,
                           {q + tile.r * in, in, tile.rows},
                           {weight + tile.o * half, half, tile.outputs},
                           {block_scales + tile.o * blocks, blocks, tile.outputs},
                           params + tile.r,
                           bias == nullptr ? nullptr : bias + tile.o,
                           y + tile.r * y_stride + tile.o,
                           y_stride};
    if (tile.r == 0) {
      tile.rows == 1 ? Int4Tile<1, true>(args, tile, weight_sums) : Int4Tile<kTileRows, true>(args, tile, weight_sums);
    } else {
      Int4Tile<kTileRows, false>(args, tile, weight_sums);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_DENSE_INT4_INL_H_
