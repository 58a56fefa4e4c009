// A small f32 matrix product and a transpose, for shapes of a few hundred: chunks, feature maps, slots.
#if defined(TARN_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TARN_KERNELS_GEMM_INL_H_
#undef TARN_KERNELS_GEMM_INL_H_
#else
#define TARN_KERNELS_GEMM_INL_H_
#endif

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/stored-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tarn {
namespace HWY_NAMESPACE {

// C[m, n] = A[m, k] B[k, n], or C += A B. A is read element by element, so its strides are free (a transposed A costs nothing); B
// and C are row-major. C overlaps neither A nor B. Each element is one sum over k, in order, whatever m and n are; += goes on with
// the sum that C holds, so that B may come in blocks of rows.
struct GemmArgs {
  size_t m, n, k;
  const float* a;
  size_t a_row, a_col;
  const float* b;
  size_t b_row;
  bool accumulate;
  float* c;
  size_t c_row;
};

// Vectors of C that a tile holds per row, for up to four rows. Vectors have no arrays on targets whose length is not known to the
// compiler, hence sixteen names below; those that a tile does not use cost nothing.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSE2
constexpr size_t kGemmVectors = 2;  // 16 registers
#else
constexpr size_t kGemmVectors = 4;  // 32 registers
#endif

template <bool kMasked>
HWY_INLINE VF LoadPart(DF d, const float* p, size_t count) {
  if constexpr (kMasked) return hn::LoadN(d, p, count);
  return hn::LoadU(d, p);
}

template <bool kMasked>
HWY_INLINE void StorePart(VF v, DF d, float* p, size_t count) {
  if constexpr (kMasked) {
    hn::StoreN(v, d, p, count);
  } else {
    hn::StoreU(v, d, p);
  }
}

template <size_t kVectors>
HWY_INLINE void FmaRow(float a, VF b0, VF b1, VF b2, VF b3, VF& c0, VF& c1, VF& c2, VF& c3) {
  const VF va = hn::Set(DF(), a);
  c0 = hn::MulAdd(va, b0, c0);
  if constexpr (kVectors > 1) c1 = hn::MulAdd(va, b1, c1);
  if constexpr (kVectors > 2) c2 = hn::MulAdd(va, b2, c2);
  if constexpr (kVectors > 3) c3 = hn::MulAdd(va, b3, c3);
}

// One row of a tile, before its first product and after its last. `count` is the number of columns of a masked tile, which is one
// vector wide.
template <size_t kVectors, bool kMasked>
HWY_INLINE void GetRow(const float* c, size_t count, VF& c0, VF& c1, VF& c2, VF& c3) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  c0 = LoadPart<kMasked>(d, c, count);
  if constexpr (kVectors > 1) c1 = hn::LoadU(d, c + lanes);
  if constexpr (kVectors > 2) c2 = hn::LoadU(d, c + 2 * lanes);
  if constexpr (kVectors > 3) c3 = hn::LoadU(d, c + 3 * lanes);
}

template <size_t kVectors, bool kMasked>
HWY_INLINE void PutRow(size_t count, VF c0, VF c1, VF c2, VF c3, float* c) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  StorePart<kMasked>(c0, d, c, count);
  if constexpr (kVectors > 1) hn::StoreU(c1, d, c + lanes);
  if constexpr (kVectors > 2) hn::StoreU(c2, d, c + 2 * lanes);
  if constexpr (kVectors > 3) hn::StoreU(c3, d, c + 3 * lanes);
}

// kRows x kVectors vectors of C, from row i and column j on.
template <size_t kRows, size_t kVectors, bool kMasked>
HWY_NOINLINE void GemmTile(const GemmArgs& g, size_t i, size_t j) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const size_t count = g.n - j;
  const float* a = g.a + i * g.a_row;
  const float* b = g.b + j;
  const size_t row = g.a_row, b_row = g.b_row, a_col = g.a_col;
  VF c00 = hn::Zero(d), c01 = c00, c02 = c00, c03 = c00, c10 = c00, c11 = c00, c12 = c00, c13 = c00;
  VF c20 = c00, c21 = c00, c22 = c00, c23 = c00, c30 = c00, c31 = c00, c32 = c00, c33 = c00;
  float* c = g.c + i * g.c_row + j;
  if (g.accumulate) {
    GetRow<kVectors, kMasked>(c, count, c00, c01, c02, c03);
    if constexpr (kRows > 1) GetRow<kVectors, kMasked>(c + g.c_row, count, c10, c11, c12, c13);
    if constexpr (kRows > 2) GetRow<kVectors, kMasked>(c + 2 * g.c_row, count, c20, c21, c22, c23);
    if constexpr (kRows > 3) GetRow<kVectors, kMasked>(c + 3 * g.c_row, count, c30, c31, c32, c33);
  }
  for (size_t x = g.k; x != 0; --x, a += a_col, b += b_row) {
    const VF b0 = LoadPart<kMasked>(d, b, count);
    VF b1 = b0, b2 = b0, b3 = b0;
    if constexpr (kVectors > 1) b1 = hn::LoadU(d, b + lanes);
    if constexpr (kVectors > 2) b2 = hn::LoadU(d, b + 2 * lanes);
    if constexpr (kVectors > 3) b3 = hn::LoadU(d, b + 3 * lanes);
    FmaRow<kVectors>(a[0], b0, b1, b2, b3, c00, c01, c02, c03);
    if constexpr (kRows > 1) FmaRow<kVectors>(a[row], b0, b1, b2, b3, c10, c11, c12, c13);
    if constexpr (kRows > 2) FmaRow<kVectors>(a[2 * row], b0, b1, b2, b3, c20, c21, c22, c23);
    if constexpr (kRows > 3) FmaRow<kVectors>(a[3 * row], b0, b1, b2, b3, c30, c31, c32, c33);
  }
  PutRow<kVectors, kMasked>(count, c00, c01, c02, c03, c);
  if constexpr (kRows > 1) PutRow<kVectors, kMasked>(count, c10, c11, c12, c13, c + g.c_row);
  if constexpr (kRows > 2) PutRow<kVectors, kMasked>(count, c20, c21, c22, c23, c + 2 * g.c_row);
  if constexpr (kRows > 3) PutRow<kVectors, kMasked>(count, c30, c31, c32, c33, c + 3 * g.c_row);
}

// All rows of the columns from j on.
template <size_t kVectors, bool kMasked>
HWY_INLINE void GemmColumns(const GemmArgs& g, size_t j) {
  size_t i = 0;
  for (; i + 4 <= g.m; i += 4) GemmTile<4, kVectors, kMasked>(g, i, j);
  if (g.m - i == 3) GemmTile<3, kVectors, kMasked>(g, i, j);
  if (g.m - i == 2) GemmTile<2, kVectors, kMasked>(g, i, j);
  if (g.m - i == 1) GemmTile<1, kVectors, kMasked>(g, i, j);
}

// Asks for a line that will be read once. The second cache of Zen 4 takes more requests at a time than the first: states of f16 and
// int8 are read in 0.9 of the time so. Other CPUs with x86 were not measured.
HWY_INLINE void PrefetchStream(const uint8_t* line) {
#if HWY_ARCH_X86
  __builtin_prefetch(line, /*write=*/0, /*locality=*/2);
#else
  hwy::Prefetch(line);
#endif
}

// Vectors of a row that are made together where there are 16 registers. With kGemmVectors a row would wait for its sums, and B
// would be read in several passes with gaps.
constexpr size_t kVectorsOfRow = 8;
constexpr bool kHaveWideRows = kGemmVectors < 4;

// kVectorsOfRow vectors of c = a[k] B[k, ...], or c += a B, with elements T of B: f32, f16 or int8.
template <typename T>
struct WideRowArgs {
  size_t k;
  const float* a;
  size_t a_col;
  const T* b;
  size_t b_row;
  const float* scales;  // [k], int8 alone
  bool accumulate;
  float* c;
};

template <typename T>
HWY_INLINE VF LoadElements(const T* p, VF scale) {
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(DF(), p);
  } else {
    return LoadStored<false>(p, 0, scale);
  }
}

template <typename T>
HWY_NOINLINE void WideRow(const WideRowArgs<T>& w) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const float *a = w.a, *scales = w.scales;
  const T* b = w.b;
  VF c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0, c6 = c0, c7 = c0;
  if (w.accumulate) {
    GetRow<4, false>(w.c, 0, c0, c1, c2, c3);
    GetRow<4, false>(w.c + 4 * lanes, 0, c4, c5, c6, c7);
  }
  for (size_t x = w.k; x != 0; --x, a += w.a_col, b += w.b_row) {
    if constexpr (!std::is_same_v<T, float>) {
      for (size_t at = 0; at < kVectorsOfRow * lanes * sizeof(T); at += kLineBytes) {
        PrefetchStream(reinterpret_cast<const uint8_t*>(b) + 2 * kAheadBytes + at);
      }
    }
    VF scale = c0;
    if constexpr (sizeof(T) == 1) scale = hn::Set(d, *scales++);
    const VF va = hn::Set(d, *a);
    c0 = hn::MulAdd(va, LoadElements(b, scale), c0);
    c1 = hn::MulAdd(va, LoadElements(b + lanes, scale), c1);
    c2 = hn::MulAdd(va, LoadElements(b + 2 * lanes, scale), c2);
    c3 = hn::MulAdd(va, LoadElements(b + 3 * lanes, scale), c3);
    c4 = hn::MulAdd(va, LoadElements(b + 4 * lanes, scale), c4);
    c5 = hn::MulAdd(va, LoadElements(b + 5 * lanes, scale), c5);
    c6 = hn::MulAdd(va, LoadElements(b + 6 * lanes, scale), c6);
    c7 = hn::MulAdd(va, LoadElements(b + 7 * lanes, scale), c7);
  }
  PutRow<4, false>(0, c0, c1, c2, c3, w.c);
  PutRow<4, false>(0, c4, c5, c6, c7, w.c + 4 * lanes);
}

HWY_INLINE void Gemm(const GemmArgs& g) {
  const size_t lanes = hn::Lanes(DF());
  size_t j = 0;
  if (kHaveWideRows && g.m <= 2) {
    for (; j + kVectorsOfRow * lanes <= g.n; j += kVectorsOfRow * lanes) {
      for (size_t i = 0; i < g.m; ++i) {
        WideRow<float>({g.k, g.a + i * g.a_row, g.a_col, g.b + j, g.b_row, nullptr, g.accumulate, g.c + i * g.c_row + j});
      }
    }
  }
  for (; j + kGemmVectors * lanes <= g.n; j += kGemmVectors * lanes) GemmColumns<kGemmVectors, false>(g, j);
  if constexpr (kGemmVectors > 2) {
    for (; j + 2 * lanes <= g.n; j += 2 * lanes) GemmColumns<2, false>(g, j);
  }
  for (; j + lanes <= g.n; j += lanes) GemmColumns<1, false>(g, j);
  if (j < g.n) GemmColumns<1, true>(g, j);
}

// C[r, g, n] = A[r, g, k] B[k, n] for R rows of G query heads that stand side by side: A's and C's rows lie a_row and c_row apart,
// the heads of a row a_query and c_query; B is contiguous.
struct GemmOfQueriesArgs {
  size_t rows, queries, n, k;
  const float* a;
  size_t a_row, a_query;
  StoredRows b;
  float* c;
  size_t c_row, c_query;
};

// Products of many rows read B fewer times: so the smaller of R and G is the loop around them.
HWY_INLINE void GemmOfFloats(const GemmOfQueriesArgs& q, size_t k, const float* a, const float* b, size_t b_row, size_t n,
                             bool accumulate, float* c) {
  const bool by_query = q.rows > q.queries;
  const size_t count = by_query ? q.queries : q.rows, m = by_query ? q.rows : q.queries;
  const size_t a_step = by_query ? q.a_query : q.a_row, c_step = by_query ? q.c_query : q.c_row;
  const size_t a_row = by_query ? q.a_row : q.a_query, c_row = by_query ? q.c_row : q.c_query;
  for (size_t i = 0; i < count; ++i) Gemm({m, n, k, a + i * a_step, a_row, 1, b, b_row, accumulate, c + i * c_step, c_row});
}

// c[n] = a[k] B[k, n], or c += a B, for one row a and elements T of B, f16 or int8: they become f32 in registers.
template <typename T>
struct RowProductArgs {
  size_t n, k;
  const float* a;
  const T* b;           // contiguous
  const float* scales;  // [k], int8 alone
  bool accumulate;
  float* c;
};

// kVectors vectors of c, from column j on.
template <size_t kVectors, bool kMasked, typename T>
HWY_NOINLINE void RowProductTile(const RowProductArgs<T>& p, size_t j) {
  const DF d;
  const size_t lanes = hn::Lanes(d), count = p.n - j, n = p.n;
  VF c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0;
  if (p.accumulate) GetRow<kVectors, kMasked>(p.c + j, count, c0, c1, c2, c3);
  const float *a = p.a, *scales = p.scales;
  const T* b = p.b + j;
  for (size_t x = p.k; x != 0; --x, ++a, b += n) {
    for (size_t at = 0; at < kVectors * lanes * sizeof(T); at += kLineBytes) {
      PrefetchStream(reinterpret_cast<const uint8_t*>(b) + 2 * kAheadBytes + at);
    }
    VF scale = c0;
    if constexpr (sizeof(T) == 1) scale = hn::Set(d, *scales++);
    const VF b0 = LoadStored<kMasked>(b, count, scale);
    VF b1 = b0, b2 = b0, b3 = b0;
    if constexpr (kVectors > 1) b1 = LoadStored<false>(b + lanes, 0, scale);
    if constexpr (kVectors > 2) b2 = LoadStored<false>(b + 2 * lanes, 0, scale);
    if constexpr (kVectors > 3) b3 = LoadStored<false>(b + 3 * lanes, 0, scale);
    FmaRow<kVectors>(*a, b0, b1, b2, b3, c0, c1, c2, c3);
  }
  PutRow<kVectors, kMasked>(count, c0, c1, c2, c3, p.c + j);
}

// In blocks of rows that stay in the first cache while all columns are made: every byte is read from memory once, in its order.
template <typename T>
HWY_INLINE void RowProduct(RowProductArgs<T> p) {
  constexpr size_t kBlockBytes = 8192;
  const size_t lanes = hn::Lanes(DF()), rows = p.k, most = HWY_MAX(kBlockBytes / (p.n * sizeof(T)), size_t{1});
  for (size_t row = 0; row < rows; row += p.k) {
    p.k = HWY_MIN(most, rows - row);
    p.accumulate = row > 0;
    size_t j = 0;
    for (; kHaveWideRows && j + kVectorsOfRow * lanes <= p.n; j += kVectorsOfRow * lanes) {
      WideRow<T>({p.k, p.a, 1, p.b + j, p.n, p.scales, p.accumulate, p.c + j});
    }
    for (; j + kGemmVectors * lanes <= p.n; j += kGemmVectors * lanes) RowProductTile<kGemmVectors, false>(p, j);
    for (; j + lanes <= p.n; j += lanes) RowProductTile<1, false>(p, j);
    if (j < p.n) RowProductTile<1, true>(p, j);
    p.a += p.k;
    p.b += p.k * p.n;
    if (p.scales != nullptr) p.scales += p.k;
  }
}

// One row of A, a step's, meets B as it is stored. For more, a B that is not f32 is converted, in blocks that stay in the first
// cache: its bytes are read once from memory, in their order.
HWY_NOINLINE inline void GemmOfQueries(const GemmOfQueriesArgs& q) {
  if (q.b.type == RowType::kF32) return GemmOfFloats(q, q.k, q.a, static_cast<const float*>(q.b.data), q.n, q.n, false, q.c);
  if (q.rows * q.queries == 1) {
    if (q.b.type == RowType::kF16) {
      return RowProduct<uint16_t>({q.n, q.k, q.a, static_cast<const uint16_t*>(q.b.data), nullptr, false, q.c});
    }
    return RowProduct<int8_t>({q.n, q.k, q.a, static_cast<const int8_t*>(q.b.data), q.b.scales, false, q.c});
  }
  ForEachF32Block(q.b, q.k, q.n, [&](size_t row, size_t rows, size_t column, size_t columns, float* block) {
    GemmOfFloats(q, rows, q.a + row, block, columns, columns, row > 0, q.c + column);
  });
}

// Rows that the two products below take at a time: elements right of the diagonal are made or read only inside a block.
constexpr size_t kTriangleRows = 16;

// C = tril(A B): C[i, j] for j <= i, and 0 above, for the columns j < min(m, i rounded up to kTriangleRows). Those right of them
// stay as they are: GemmOfTriangle does not read them.
HWY_INLINE void GemmToTriangle(const GemmArgs& g) {
  for (size_t i = 0; i < g.m; i += kTriangleRows) {
    const size_t rows = g.m - i < kTriangleRows ? g.m - i : kTriangleRows;
    GemmArgs block = g;
    block.m = rows;
    block.n = i + rows;
    block.a += i * g.a_row;
    block.c += i * g.c_row;
    Gemm(block);
    for (size_t r = 0; r + 1 < rows; ++r) std::memset(block.c + r * g.c_row + i + r + 1, 0, (rows - 1 - r) * sizeof(float));
  }
}

// C = A B for an A [m, m] that GemmToTriangle made.
HWY_INLINE void GemmOfTriangle(const GemmArgs& g) {
  for (size_t i = 0; i < g.m; i += kTriangleRows) {
    GemmArgs block = g;
    block.m = g.m - i < kTriangleRows ? g.m - i : kTriangleRows;
    block.k = i + block.m;
    block.a += i * g.a_row;
    block.c += i * g.c_row;
    Gemm(block);
  }
}

// to[cols, rows] = from[rows, cols]^T. `to` is contiguous.
HWY_INLINE void Transpose(size_t rows, size_t cols, const float* from, size_t from_row, float* to) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN float quads[4 * hn::MaxLanes(DF())];  // [lanes, 4]
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* f = from + r * from_row;
    size_t c = 0;
    for (; c + lanes <= cols; c += lanes) {
      hn::StoreInterleaved4(hn::LoadU(d, f + c), hn::LoadU(d, f + from_row + c), hn::LoadU(d, f + 2 * from_row + c),
                            hn::LoadU(d, f + 3 * from_row + c), d, quads);
      for (size_t l = 0; l < lanes; ++l) std::memcpy(to + (c + l) * rows + r, quads + 4 * l, 4 * sizeof(float));
    }
    for (; c < cols; ++c) {
      for (size_t l = 0; l < 4; ++l) to[c * rows + r + l] = f[l * from_row + c];
    }
  }
  for (; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) to[c * rows + r] = from[r * from_row + c];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tarn
HWY_AFTER_NAMESPACE();

#endif  // TARN_KERNELS_GEMM_INL_H_
