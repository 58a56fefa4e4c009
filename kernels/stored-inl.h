// Vectors of elements as states and rings store them, to and from f32 in registers. The element type says which:
// uint16_t for the bits of an f16, int8_t.
#if defined(TARN_KERNELS_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_STORED_INL_H_
#undef TARN_KERNELS_STORED_INL_H_
#else
#define TARN_KERNELS_STORED_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/stored.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// Whether the CPU converts f16 itself. Where it does not, Highway's code in place of it makes numbers of infinity and NaN.
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSE2 || (HWY_ARCH_ARM_V7 && !HWY_NEON_HAVE_F16C)
constexpr bool kConvertsF16 = false;
#else
constexpr bool kConvertsF16 = true;
#endif

using HalfBits = hn::Vec<hn::Rebind<uint16_t, DF>>;

HWY_INLINE VF FromF16(HalfBits bits) {
  const DF d;
  if constexpr (kConvertsF16) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), bits));
  } else {
    // Exponent and fraction where f32 has them, and the exponent moved to f32's bias. The largest moves on to f32's largest. Of
    // the smallest, 2^-14 (1 + fraction) is made, and 2^-14 taken away: no denormal on the way, which might count as 0.
    const hn::RebindToUnsigned<DF> du;
    const auto wide = hn::PromoteTo(du, bits);
    const auto size = hn::ShiftLeft<13>(hn::And(wide, hn::Set(du, 0x7FFF)));
    const auto exponent = hn::And(size, hn::Set(du, 31u << 23));
    const auto moved = hn::Add(size, hn::Set(du, 112u << 23));
    const auto special =
        hn::Add(moved, hn::And(hn::VecFromMask(du, hn::Eq(exponent, hn::Set(du, 31u << 23))), hn::Set(du, 112u << 23)));
    const VF small = hn::Sub(hn::BitCast(d, hn::Add(moved, hn::Set(du, 1u << 23))), hn::BitCast(d, hn::Set(du, 113u << 23)));
    const auto is_small = hn::RebindMask(d, hn::Eq(exponent, hn::Zero(du)));
    const VF value = hn::IfThenElse(is_small, small, hn::BitCast(d, special));
    return hn::Or(value, hn::BitCast(d, hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000)))));
  }
}

// To nearest even. Values beyond f16's range stop at its ends; NaN compares false and stays NaN.
HWY_INLINE HalfBits ToF16(VF x) {
  const DF d;
  const VF most = hn::Set(d, 65504.0f);
  const VF limited = hn::IfThenElse(hn::Gt(hn::Abs(x), most), hn::CopySign(most, x), x);
  return hn::BitCast(hn::Rebind<uint16_t, DF>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), limited));
}

// A vector of a row; of a masked one, its first `count` elements, and zeros.
template <bool kMasked>
HWY_INLINE VF LoadStored(const uint16_t* p, size_t count, VF) {
  const hn::Rebind<uint16_t, DF> du;
  return FromF16(kMasked ? hn::LoadN(du, p, count) : hn::LoadU(du, p));
}
template <bool kMasked>
HWY_INLINE VF LoadStored(const int8_t* p, size_t count, VF scale) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(d32, kMasked ? hn::LoadN(d8, p, count) : hn::LoadU(d8, p))), scale);
}

template <bool kMasked>
HWY_INLINE void StoreStored(VF v, uint16_t* p, size_t count) {
  const hn::Rebind<uint16_t, DF> du;
  if constexpr (kMasked) {
    hn::StoreN(ToF16(v), du, p, count);
  } else {
    hn::StoreU(ToF16(v), du, p);
  }
}

// A row of n elements as floats.
template <typename T>
HWY_INLINE void StoredToF32(size_t n, const T* x, VF scale, float* y) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadStored<false>(x + i, 0, scale), d, y + i);
  if (i < n) hn::StoreN(LoadStored<true>(x + i, n - i, scale), d, y + i, n - i);
}

constexpr size_t kAheadBytes = 4096;

// Columns [column, column + columns) of rows [row, row + rows) as floats: to[rows, columns], contiguous. Rows lie `stride` elements
// apart; f16 and int8 alone. What comes next is asked for, as nobody reads from memory while a block is in use.
HWY_NOINLINE inline void RowsToF32(const StoredRows& from, size_t stride, size_t row, size_t rows, size_t column, size_t columns,
                                   float* to) {
  const size_t element_bytes = from.type == RowType::kF16 ? sizeof(uint16_t) : sizeof(int8_t);
  for (size_t end = row + rows; row < end; ++row, to += columns) {
    const uint8_t* data = static_cast<const uint8_t*>(from.data) + (row * stride + column) * element_bytes;
    for (size_t i = 0; i < columns * element_bytes; i += kLineBytes) hwy::Prefetch(data + i + kAheadBytes);
    if (from.type == RowType::kF16) {
      StoredToF32(columns, reinterpret_cast<const uint16_t*>(data), hn::Zero(DF()), to);
    } else {
      StoredToF32(columns, reinterpret_cast<const int8_t*>(data), hn::Set(DF(), from.scales[row]), to);
    }
  }
}

// The other way, to rows `stride` elements apart.
HWY_INLINE void RowsToF16(const float* from, size_t rows, size_t columns, uint16_t* to, size_t stride) {
  const size_t lanes = hn::Lanes(DF());
  for (; rows != 0; --rows, from += columns, to += stride) {
    size_t i = 0;
    for (; i + lanes <= columns; i += lanes) StoreStored<false>(hn::LoadU(DF(), from + i), to + i, 0);
    if (i < columns) StoreStored<true>(hn::LoadN(DF(), from + i, columns - i), to + i, columns - i);
  }
}

// f(row, rows, column, columns, block) for blocks that cover a matrix [rows, columns] of f16 or int8, each in f32: block[rows,
// columns] is contiguous and small enough to stay in the first cache. Blocks of the same columns come one after the other.
template <typename F>
HWY_INLINE void ForEachF32Block(const StoredRows& matrix, size_t all_rows, size_t all_columns, const F& f) {
  constexpr size_t kElements = 1024, kColumns = 256;
  HWY_ALIGN float block[kElements];
  for (size_t column = 0; column < all_columns; column += kColumns) {
    const size_t columns = all_columns - column < kColumns ? all_columns - column : kColumns;
    const size_t most = kElements / columns;
    for (size_t row = 0; row < all_rows; row += most) {
      const size_t rows = all_rows - row < most ? all_rows - row : most;
      RowsToF32(matrix, all_columns, row, rows, column, columns, block);
      f(row, rows, column, columns, block);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_STORED_INL_H_
