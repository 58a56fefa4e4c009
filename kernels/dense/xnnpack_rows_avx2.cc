// AVX2, without VNNI.
#include "kernels/dense/xnnpack_rows_panels.h"

#if defined(TARN_HAVE_XNNPACK) && defined(__x86_64__)

#include <immintrin.h>

namespace tarn {
namespace {

#define TARN_AVX2 __attribute__((target("avx2,fma")))

// On AMD's cores a store with a mask takes as long as many without.
TARN_AVX2 inline void StoreFirst(size_t count, __m256 v, float* y) {
  if (count >= 8) return _mm256_storeu_ps(y, v);
  const __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  _mm256_maskstore_ps(y, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), number), v);
}

// Products of 8 bytes of x, repeated, with 8 bytes each of four outputs; the sum of an output lies in two lanes. Pairs of |x| times
// w with the sign of x fit i16, as 2 * 128 * 127 < 2^15. But 128 is no byte: with kAnyWeight, w may be -128, and bytes are widened.
template <bool kAnyWeight>
TARN_AVX2 inline __m256i ProductsOfBytes(__m256i x, __m256i w) {
  if constexpr (kAnyWeight) {
    const __m256i even =
        _mm256_madd_epi16(_mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
    return _mm256_add_epi32(even, _mm256_madd_epi16(_mm256_srai_epi16(x, 8), _mm256_srai_epi16(w, 8)));
  }
  return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(w, x)), _mm256_set1_epi16(1));
}

template <size_t kRows, bool kAnyWeight = false>
TARN_AVX2 void Avx2Int8Panel(const QuantizedRows& x, const PanelPass& pass, const uint8_t* panel, size_t outputs, float* y,
                             size_t y_stride) {
  const uint8_t* weights = panel + 32;
  const Qdu8* params = x.params + pass.row;
  const uint8_t* q = x.q + pass.row * x.inputs;
  const __m256i minus_sums = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel));
  __m256i low[kRows], high[kRows];  // outputs 0 to 3, and 4 to 7
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {  // the first of an output's lanes has all of it
    const __m256i moved = _mm256_mullo_epi32(minus_sums, _mm256_set1_epi32(params[r].zero_point - 128));
    low[r] = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(moved));
    high[r] = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(moved, 1));
  }
  [[maybe_unused]] __m256i least = _mm256_setzero_si256();
  // Each of several passes asks for its share of the panel behind this one; a single pass is what the CPU's own prefetcher follows.
  const bool asks = pass.count > 1;
  const size_t share = 64 / pass.count;
  const char* next = reinterpret_cast<const char*>(weights) + (x.inputs + pass.number * x.inputs / pass.count) * 8;
  const uint8_t* end = q + x.inputs;
  do {
    const __m256i w0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
    const __m256i w1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 32));
    if (asks) _mm_prefetch(next, _MM_HINT_T1);
    next += share;
    if constexpr (!kAnyWeight) least = _mm256_min_epi8(least, _mm256_min_epi8(w0, w1));
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const __m256i group = _mm256_set1_epi64x(LoadEightBytes(q + r * x.inputs));
      low[r] = _mm256_add_epi32(low[r], ProductsOfBytes<kAnyWeight>(group, w0));
      high[r] = _mm256_add_epi32(high[r], ProductsOfBytes<kAnyWeight>(group, w1));
    }
    q += 8;
    weights += 64;
  } while (q < end);
  if constexpr (!kAnyWeight) {
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_set1_epi8(-128))) != 0) {
      return Avx2Int8Panel<kRows, true>(x, pass, panel, outputs, y, y_stride);
    }
  }
  const __m256 scale = _mm256_loadu_ps(reinterpret_cast<const float*>(weights));
  const __m256 bias = _mm256_loadu_ps(reinterpret_cast<const float*>(weights + 32));
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    const __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low[r], high[r]), 0xD8);
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(params[r].scale));
    StoreFirst(outputs, _mm256_fmadd_ps(scaled, scale, bias), y + r * y_stride);
  }
}

// Several rows are at least two in each pass.
constexpr MultiplyPanel kAvx2Int8Panels[] = {nullptr, Avx2Int8Panel<2>, Avx2Int8Panel<3>, Avx2Int8Panel<4>};

// int4: 4 outputs a vector of i16, each in four lanes, whose sums stay apart to the end.

TARN_AVX2 inline __m256i WidenHalf(__m256i v, int half) {
  return _mm256_cvtepi16_epi32(half == 0 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1));
}

template <size_t kRows>
TARN_AVX2 void Avx2Int4Panel(const QuantizedRows& x, const PanelPass& pass, const uint8_t* panel, size_t outputs, float* y,
                             size_t y_stride) {
  const __m256i lower = _mm256_set1_epi8(15), flip = _mm256_set1_epi8(static_cast<char>(0x88)), eight = _mm256_set1_epi8(8);
  const __m256i two = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);  // of two outputs, which have four lanes each
  const uint8_t* q = x.q + pass.row * x.inputs;
  __m256 sums[kRows][4];
  for (size_t r = 0; r < kRows; ++r) {
    const __m256 zero_point = _mm256_set1_ps(static_cast<float>(x.params[pass.row + r].zero_point - 128));
    for (size_t i = 0; i < 4; ++i) {  // the first of an output's lanes has all of it
      const float* from = reinterpret_cast<const float*>(panel) + 2 * i;
      sums[r][i] = _mm256_mul_ps(_mm256_setr_ps(from[0], 0, 0, 0, from[1], 0, 0, 0), zero_point);
    }
  }
  panel += 32;
  for (size_t block = 0; block < x.inputs; block += kScaleBlock, q += kScaleBlock, panel += 128 + 16) {
    __m256i products[kRows][2];  // of outputs 0 to 3, and 4 to 7. They fit: 8 * 15 * 128 < 2^15
    for (size_t r = 0; r < kRows; ++r) {
      // Nibbles are multiplied as they would be without a sign, 8 too large.
      const __m256i eights = _mm256_maddubs_epi16(eight, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + r * x.inputs)));
      __m128i lanes = _mm_add_epi16(_mm256_castsi256_si128(eights), _mm256_extracti128_si256(eights, 1));
      lanes = _mm_add_epi16(lanes, _mm_unpackhi_epi64(lanes, lanes));
      products[r][0] = products[r][1] = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_broadcastq_epi64(lanes));
    }
    for (size_t h = 0; h < 2; ++h) {
      for (size_t v = 0; v < 2; ++v) {
        const __m256i* from = reinterpret_cast<const __m256i*>(panel + h * 64 + v * 32);
        const __m256i w = _mm256_xor_si256(_mm256_loadu_si256(from), flip);
        const __m256i w_first = _mm256_and_si256(w, lower), w_second = _mm256_and_si256(_mm256_srli_epi16(w, 4), lower);
        for (size_t r = 0; r < kRows; ++r) {
          const uint8_t* half = q + r * x.inputs + h * kHalf;
          const __m256i first = _mm256_set1_epi64x(LoadEightBytes(half)), second = _mm256_set1_epi64x(LoadEightBytes(half + 8));
          products[r][v] = _mm256_add_epi16(products[r][v], _mm256_maddubs_epi16(w_first, first));
          products[r][v] = _mm256_add_epi16(products[r][v], _mm256_maddubs_epi16(w_second, second));
        }
      }
    }
    const __m128i bf16 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(panel + 128));
    const __m256 scales = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16)),
                                        _mm256_set1_ps(16.0f));  // a power of two: nothing rounds
    for (size_t i = 0; i < 4; ++i) {
      const __m256 scale = _mm256_permutevar8x32_ps(scales, _mm256_add_epi32(two, _mm256_set1_epi32(static_cast<int>(2 * i))));
      for (size_t r = 0; r < kRows; ++r) {
        const __m256 f32 = _mm256_cvtepi32_ps(WidenHalf(products[r][i / 2], i % 2));
        sums[r][i] = _mm256_fmadd_ps(f32, scale, sums[r][i]);
      }
    }
  }
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (size_t r = 0; r < kRows; ++r) {
    const __m256 fours = _mm256_hadd_ps(_mm256_hadd_ps(sums[r][0], sums[r][1]), _mm256_hadd_ps(sums[r][2], sums[r][3]));
    const __m256 scaled = _mm256_fmadd_ps(_mm256_permutevar8x32_ps(fours, order), _mm256_set1_ps(x.params[pass.row + r].scale),
                                          _mm256_loadu_ps(reinterpret_cast<const float*>(panel)));
    StoreFirst(outputs, scaled, y + r * y_stride);
  }
}

constexpr MultiplyPanel kAvx2Int4Panels[] = {Avx2Int4Panel<1>, Avx2Int4Panel<2>};

}  // namespace

const RowKernel kAvx2Int8Rows = {"AVX2", DenseWeights::kQC8W, 8, false, 2, 64, MultiplyRows<kAvx2Int8Panels>};
const RowKernel kAvx2Int4Rows = {"AVX2", DenseWeights::kQB4W, 8, false, 1, 7, MultiplyRows<kAvx2Int4Panels>};

}  // namespace tarn

#endif  // TARN_HAVE_XNNPACK
