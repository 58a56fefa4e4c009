#include "kernels/dense/xnnpack_rows.h"

#if defined(TARN_HAVE_XNNPACK)

#include <cpuinfo.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// Of the undefined values that GCC's AVX-512 intrinsics begin with.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tarn {
namespace {

// One of the passes over a panel, over rows of x from `row` on.
struct Pass {
  size_t row, number, count;
};

// One panel times the rows of a pass; `outputs` of the panel's are there.
using MultiplyPanel = void (*)(const QuantizedRows& x, const Pass& pass, const uint8_t* panel, size_t outputs, float* y,
                               size_t y_stride);

// By[i] takes i + 1 rows. As few passes as that allows, with about equal rows.
template <const auto& By>
void Multiply(const QuantizedRows& x, const uint8_t* panel, size_t outputs, float* y, size_t y_stride) {
  const size_t count = (x.rows + std::size(By) - 1) / std::size(By);
  for (size_t number = 0; number < count; ++number) {
    const Pass pass = {number * x.rows / count, number, count};
    const size_t rows = (number + 1) * x.rows / count - pass.row;
    By[rows - 1](x, pass, panel, outputs, y + pass.row * y_stride, y_stride);
  }
}

template <typename T>
T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

#if defined(__x86_64__)

// Order of the nibbles: [2][outputs][8], byte k of half h of a block holds inputs 16h + k (low) and 16h + 8 + k (high).
constexpr size_t kHalf = kScaleBlock / 2;

// ---- AVX-512 VNNI: 8 outputs a vector, each in two lanes ----

// How far ahead of the weights in work to ask for others, in bytes: measured; memory answers while so many are multiplied.
constexpr size_t kAhead = 8192;

// What XNNPACK's kernel asks for.
#define TARN_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

template <size_t kRows>
TARN_VNNI void VnniInt4Panel(const QuantizedRows& x, const Pass& pass, const uint8_t* panel, size_t outputs, float* y,
                             size_t y_stride) {
  const __m512i upper = _mm512_set1_epi8(static_cast<char>(0xF0));
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const uint8_t* q = x.q + pass.row * x.inputs;
  __m512 sums[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    sums[r] = _mm512_mul_ps(_mm512_loadu_ps(panel), _mm512_set1_ps(static_cast<float>(x.params[pass.row + r].zero_point)));
  }
  panel += 64;
  const bool asks = pass.count > 1 && pass.number == 0;  // a single pass is what the CPU's own prefetcher follows
  for (size_t block = 0; block < x.inputs; block += kScaleBlock, q += kScaleBlock, panel += 256 + 32) {
    if (asks) {
      for (size_t at = 0; at < 256 + 32; at += 64) _mm_prefetch(reinterpret_cast<const char*>(panel) + kAhead + at, _MM_HINT_T1);
    }
    __m512i low[kRows], high[kRows];  // outputs 0 to 7, and 8 to 15
    for (size_t r = 0; r < kRows; ++r) low[r] = high[r] = _mm512_setzero_si512();
    for (size_t h = 0; h < 2; ++h) {
      const __m512i w0 = _mm512_loadu_si512(panel + h * 128), w1 = _mm512_loadu_si512(panel + h * 128 + 64);
      const __m512i w0_first = _mm512_and_si512(_mm512_slli_epi32(w0, 4), upper), w0_second = _mm512_and_si512(w0, upper);
      const __m512i w1_first = _mm512_and_si512(_mm512_slli_epi32(w1, 4), upper), w1_second = _mm512_and_si512(w1, upper);
      for (size_t r = 0; r < kRows; ++r) {
        const uint8_t* half = q + r * x.inputs + h * kHalf;
        const __m512i first = _mm512_set1_epi64(Load<int64_t>(half)), second = _mm512_set1_epi64(Load<int64_t>(half + 8));
        low[r] = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(low[r], first, w0_first), second, w0_second);
        high[r] = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(high[r], first, w1_first), second, w1_second);
      }
    }
    const __m256i bf16 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + 256));
    const __m512 scale = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i sum =
          _mm512_add_epi32(_mm512_permutex2var_epi32(low[r], even, high[r]), _mm512_permutex2var_epi32(low[r], odd, high[r]));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, sums[r]);
    }
  }
  const __mmask16 there = static_cast<__mmask16>(outputs >= 16 ? 0xFFFF : (1u << outputs) - 1);
  for (size_t r = 0; r < kRows; ++r) {
    const __m512 scaled = _mm512_mul_ps(sums[r], _mm512_set1_ps(x.params[pass.row + r].scale));
    _mm512_mask_storeu_ps(y + r * y_stride, there, _mm512_add_ps(scaled, _mm512_loadu_ps(panel)));
  }
}

constexpr MultiplyPanel kVnniInt4Panels[] = {VnniInt4Panel<1>, VnniInt4Panel<2>, VnniInt4Panel<3>, VnniInt4Panel<4>};
[[maybe_unused]] constexpr RowKernel kVnniInt4 = {"AVX-512 VNNI", DenseWeights::kQB4W, 16, true, 1, 16, Multiply<kVnniInt4Panels>};

// Weights of int8 are in that order as they are. The sums of 8 rows fit the registers, so a batch of 16 takes two passes over a
// panel, the second from the first cache; XNNPACK's kernel takes the time of 10 rows for every 10 that have begun. GCC needs to be
// told to unroll, and copies sums to and fro if they all begin as one zero.
template <size_t kRows>
TARN_VNNI void VnniInt8Panel(const QuantizedRows& x, const Pass& pass, const uint8_t* panel, size_t outputs, float* y,
                             size_t y_stride) {
  constexpr size_t kGroup = 8, kGroupBytes = 16 * kGroup;
  const Qdu8* params = x.params + pass.row;
  const uint8_t* q = x.q + pass.row * x.inputs;
  __m512i low[kRows], high[kRows];  // outputs 0 to 7, and 8 to 15
  const __m512i minus_sums = _mm512_loadu_si512(panel);
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {  // the first of an output's lanes has all of it
    const __m512i moved = _mm512_mullo_epi32(minus_sums, _mm512_set1_epi32(params[r].zero_point));
    low[r] = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(moved));
    high[r] = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(moved, 1));
  }
  panel += 64;
  // A few rows wait for memory: what they need soon goes to the first cache. More rows than that multiply for as long as a panel
  // takes to arrive: each pass asks for its share of the panel behind this one, for the second cache, which takes more requests at
  // a time.
  const bool few = kRows <= 5 && pass.count == 1;
  const size_t share = kGroupBytes / pass.count;
  const char* next = reinterpret_cast<const char*>(panel) + (few ? kAhead : (x.inputs + pass.number * x.inputs / pass.count) * 16);
  const uint8_t* end = q + x.inputs;
  do {
    const __m512i w0 = _mm512_loadu_si512(panel), w1 = _mm512_loadu_si512(panel + 64);
    if (few) {
      _mm_prefetch(next, _MM_HINT_T0);
      _mm_prefetch(next + 64, _MM_HINT_T0);
    } else {
      _mm_prefetch(next, _MM_HINT_T1);
      _mm_prefetch(next + 64, _MM_HINT_T1);
    }
    next += share;
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const __m512i group = _mm512_set1_epi64(Load<int64_t>(q + r * x.inputs));
      low[r] = _mm512_dpbusd_epi32(low[r], group, w0);
      high[r] = _mm512_dpbusd_epi32(high[r], group, w1);
    }
    q += kGroup;
    panel += kGroupBytes;
  } while (q < end);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512 scale = _mm512_loadu_ps(panel), bias = _mm512_loadu_ps(panel + 64);
  const __mmask16 there = static_cast<__mmask16>(outputs >= 16 ? 0xFFFF : (1u << outputs) - 1);
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    const __m512i low_sum = _mm512_add_epi32(low[r], _mm512_srli_epi64(low[r], 32));
    const __m512i high_sum = _mm512_add_epi32(high[r], _mm512_srli_epi64(high[r], 32));
    const __m512i sum = _mm512_permutex2var_epi32(low_sum, even, high_sum);
    const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(params[r].scale));
    _mm512_mask_storeu_ps(y + r * y_stride, there, _mm512_fmadd_ps(scaled, scale, bias));
  }
}

constexpr MultiplyPanel kVnniInt8Panels[] = {VnniInt8Panel<1>, VnniInt8Panel<2>, VnniInt8Panel<3>, VnniInt8Panel<4>,
                                             VnniInt8Panel<5>, VnniInt8Panel<6>, VnniInt8Panel<7>, VnniInt8Panel<8>};
[[maybe_unused]] constexpr RowKernel kVnniInt8 = {"AVX-512 VNNI", DenseWeights::kQC8W, 16, true, 1, 64, Multiply<kVnniInt8Panels>};

// ---- AVX2 ----

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
TARN_AVX2 void Avx2Int8Panel(const QuantizedRows& x, const Pass& pass, const uint8_t* panel, size_t outputs, float* y,
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
      const __m256i group = _mm256_set1_epi64x(Load<int64_t>(q + r * x.inputs));
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
[[maybe_unused]] constexpr RowKernel kAvx2Int8 = {"AVX2", DenseWeights::kQC8W, 8, false, 2, 64, Multiply<kAvx2Int8Panels>};

// int4: 4 outputs a vector of i16, each in four lanes, whose sums stay apart to the end.

TARN_AVX2 inline __m256i WidenHalf(__m256i v, int half) {
  return _mm256_cvtepi16_epi32(half == 0 ? _mm256_castsi256_si128(v) : _mm256_extracti128_si256(v, 1));
}

template <size_t kRows>
TARN_AVX2 void Avx2Panel(const QuantizedRows& x, const Pass& pass, const uint8_t* panel, size_t outputs, float* y,
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
          const __m256i first = _mm256_set1_epi64x(Load<int64_t>(half)), second = _mm256_set1_epi64x(Load<int64_t>(half + 8));
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

constexpr MultiplyPanel kAvx2Panels[] = {Avx2Panel<1>, Avx2Panel<2>};
[[maybe_unused]] constexpr RowKernel kAvx2 = {"AVX2", DenseWeights::kQB4W, 8, false, 1, 7, Multiply<kAvx2Panels>};

#elif defined(__aarch64__)

// ---- NEON without dot products: products of bytes in i16 ----

// Order of the nibbles: [kScaleBlock / 2][outputs], byte i of an output holds inputs 2i (low) and 2i + 1 (high).
template <size_t kRows>
void NeonPanel(const QuantizedRows& x, const Pass& pass, const uint8_t* panel, size_t outputs, float* y, size_t y_stride) {
  const int8_t* q = reinterpret_cast<const int8_t*>(x.q) + pass.row * x.inputs;
  float32x4_t sums[kRows][4];
  for (size_t r = 0; r < kRows; ++r) {
    const float zero_point = static_cast<float>(x.params[pass.row + r].zero_point - 128);
    for (size_t i = 0; i < 4; ++i) sums[r][i] = vmulq_n_f32(vld1q_f32(reinterpret_cast<const float*>(panel) + 4 * i), zero_point);
  }
  panel += 64;
  for (size_t block = 0; block < x.inputs; block += kScaleBlock, q += kScaleBlock) {
    // Of outputs 0 to 7 and 8 to 15, low and high nibbles apart. They fit: 16 * 8 * 128 < 2^15.
    int16x8_t low[kRows][2], high[kRows][2];
    for (size_t r = 0; r < kRows; ++r) low[r][0] = low[r][1] = high[r][0] = high[r][1] = vdupq_n_s16(0);
    // Four bytes of an output at a time: cores that run in order would wait for each.
    for (size_t i = 0; i < kScaleBlock; i += 8, panel += 64) {
      int8x16_t w_low[4], w_high[4];
      for (size_t k = 0; k < 4; ++k) w_high[k] = vreinterpretq_s8_u8(vld1q_u8(panel + 16 * k));
      for (size_t k = 0; k < 4; ++k) w_low[k] = vshlq_n_s8(w_high[k], 4);
      for (size_t k = 0; k < 4; ++k) w_high[k] = vshrq_n_s8(w_high[k], 4);
      for (size_t k = 0; k < 4; ++k) w_low[k] = vshrq_n_s8(w_low[k], 4);
      for (size_t r = 0; r < kRows; ++r) {
        int8x16_t even[4], odd[4];
        for (size_t k = 0; k < 4; ++k) even[k] = vld1q_dup_s8(q + r * x.inputs + i + 2 * k);
        for (size_t k = 0; k < 4; ++k) odd[k] = vld1q_dup_s8(q + r * x.inputs + i + 2 * k + 1);
        for (size_t k = 0; k < 4; ++k) {
          low[r][0] = vmlal_s8(low[r][0], vget_low_s8(w_low[k]), vget_low_s8(even[k]));
          low[r][1] = vmlal_high_s8(low[r][1], w_low[k], even[k]);
          high[r][0] = vmlal_s8(high[r][0], vget_low_s8(w_high[k]), vget_low_s8(odd[k]));
          high[r][1] = vmlal_high_s8(high[r][1], w_high[k], odd[k]);
        }
      }
    }
    const uint16x8_t bf16[2] = {vld1q_u16(reinterpret_cast<const uint16_t*>(panel)),
                                vld1q_u16(reinterpret_cast<const uint16_t*>(panel) + 8)};
    panel += 32;
    for (size_t v = 0; v < 2; ++v) {
      const float32x4_t scale0 = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bf16[v]), 16));
      const float32x4_t scale1 = vreinterpretq_f32_u32(vshll_high_n_u16(bf16[v], 16));
      for (size_t r = 0; r < kRows; ++r) {
        const int32x4_t sum0 = vaddl_s16(vget_low_s16(low[r][v]), vget_low_s16(high[r][v]));
        const int32x4_t sum1 = vaddl_high_s16(low[r][v], high[r][v]);
        sums[r][2 * v] = vfmaq_f32(sums[r][2 * v], vcvtq_f32_s32(vshlq_n_s32(sum0, 4)), scale0);
        sums[r][2 * v + 1] = vfmaq_f32(sums[r][2 * v + 1], vcvtq_f32_s32(vshlq_n_s32(sum1, 4)), scale1);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    float whole[16];
    for (size_t i = 0; i < 4; ++i) {
      const float32x4_t bias = vld1q_f32(reinterpret_cast<const float*>(panel) + 4 * i);
      vst1q_f32(whole + 4 * i, vfmaq_n_f32(bias, sums[r][i], x.params[pass.row + r].scale));
    }
    std::copy_n(whole, std::min<size_t>(outputs, 16), y + r * y_stride);
  }
}

constexpr MultiplyPanel kNeonPanels[] = {NeonPanel<1>, NeonPanel<2>};
[[maybe_unused]] constexpr RowKernel kNeon = {"NEON", DenseWeights::kQB4W, 16, false, 1, 5, Multiply<kNeonPanels>};

#endif

}  // namespace

// As XNNPACK chooses (its src/configs/hardware-config.c and gemm-config.c).
const RowKernel* FindRowKernel(DenseWeights type) {
#if defined(__x86_64__) && !defined(__ANDROID__)
  if (cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512bw() && cpuinfo_has_x86_avx512dq() && cpuinfo_has_x86_avx512vl() &&
      cpuinfo_has_x86_avx512vnni()) {
    // For the tiles of AMX, XNNPACK packs int8 in another order: panels of 64 outputs, in groups of 4 inputs.
    if (type == DenseWeights::kQC8W) return cpuinfo_has_x86_amx_int8() ? nullptr : &kVnniInt8;
    return type == DenseWeights::kQB4W ? &kVnniInt4 : nullptr;
  }
#endif
#if defined(__x86_64__)
  if (type == DenseWeights::kQC8W) {
    // With AVX-512 XNNPACK packs 16 outputs; AVX-VNNI multiplies bytes of both signs by itself.
    const bool has_more = cpuinfo_has_x86_avx512f() || cpuinfo_has_x86_avxvnni();
    return cpuinfo_has_x86_avx2() && !has_more ? &kAvx2Int8 : nullptr;
  }
#endif
  if (type != DenseWeights::kQB4W) return nullptr;
#if defined(__x86_64__)
  return cpuinfo_has_x86_avx2() ? &kAvx2 : nullptr;
#elif defined(__aarch64__)  // the kernels with dot products and with i8mm are as short as ours would be
  return cpuinfo_has_arm_neon_dot() || cpuinfo_has_arm_i8mm() ? nullptr : &kNeon;
#else
  return nullptr;
#endif
}

}  // namespace tarn

#endif  // TARN_HAVE_XNNPACK
