// NEON without dot products: products of bytes in i16.
#include "kernels/dense/xnnpack_rows_panels.h"

#if defined(TARN_HAVE_XNNPACK) && defined(__aarch64__)

#include <arm_neon.h>

#include <algorithm>

namespace tarn {
namespace {

// Order of the nibbles: [kScaleBlock / 2][outputs], byte i of an output holds inputs 2i (low) and 2i + 1 (high).
template <size_t kRows>
void NeonPanel(const QuantizedRows& x, const PanelPass& pass, const uint8_t* panel, size_t outputs, float* y, size_t y_stride) {
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

}  // namespace

const RowKernel kNeonInt4Rows = {"NEON", DenseWeights::kQB4W, 16, false, 1, 5, MultiplyRows<kNeonPanels>};

}  // namespace tarn

#endif  // TARN_HAVE_XNNPACK
