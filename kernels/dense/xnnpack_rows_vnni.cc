// AVX-512 VNNI: 8 outputs a vector, each in two lanes.
#include "kernels/dense/xnnpack_rows_panels.h"

#if defined(TARN_HAVE_XNNPACK) && defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// Of the undefined values that GCC's AVX-512 intrinsics begin with.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

namespace tarn {
namespace {

// How far ahead of the weights in work to ask for others, in bytes: measured; memory answers while so many are multiplied.
constexpr size_t kAhead = 8192;

// What XNNPACK's kernel asks for.
#define TARN_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

template <size_t kRows>
TARN_VNNI void VnniInt4Panel(const QuantizedRows& x, const PanelPass& pass, const uint8_t* panel, size_t outputs, float* y,
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
        const __m512i first = _mm512_set1_epi64(LoadEightBytes(half)), second = _mm512_set1_epi64(LoadEightBytes(half + 8));
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

// Weights of int8 are in that order as they are. The sums of 8 rows fit the registers, so a batch of 16 takes two passes over a
// panel, the second from the first cache; XNNPACK's kernel takes the time of 10 rows for every 10 that have begun. GCC needs to be
// told to unroll, and copies sums to and fro if they all begin as one zero.
template <size_t kRows>
TARN_VNNI void VnniInt8Panel(const QuantizedRows& x, const PanelPass& pass, const uint8_t* panel, size_t outputs, float* y,
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
      const __m512i group = _mm512_set1_epi64(LoadEightBytes(q + r * x.inputs));
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

}  // namespace

const RowKernel kVnniInt4Rows = {"AVX-512 VNNI", DenseWeights::kQB4W, 16, true, 1, 16, MultiplyRows<kVnniInt4Panels>};
const RowKernel kVnniInt8Rows = {"AVX-512 VNNI", DenseWeights::kQC8W, 16, true, 1, 64, MultiplyRows<kVnniInt8Panels>};

}  // namespace tarn

#endif  // TARN_HAVE_XNNPACK
