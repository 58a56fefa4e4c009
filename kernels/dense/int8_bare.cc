#include "kernels/dense/int8_bare.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>

#include <cstring>
#endif

namespace tarn {
namespace {

// Each version of Dot: sum (q - zero_point) w over `in` elements, q in [0, 255], w in [-128, 127]. The sum fits i32: the op takes
// at most kMaxInt8Inputs inputs (variants/limits.h).

#if defined(__ARM_FEATURE_MVE)

// Products of MVE have factors of one signedness: with p = q - 128, the sum is that of p w and (128 - zero_point) times that of w.
int32_t Dot(size_t in, const uint8_t* q, int32_t zero_point, const int8_t* w) {
  constexpr size_t kLanes = 16;
  const uint8x16_t middle = vdupq_n_u8(128);
  int32_t products = 0, weights = 0;
  for (size_t i = 0; i < in; i += kLanes) {
    const mve_pred16_t inside = vctp8q(static_cast<uint32_t>(in - i));  // behind the row: zeros
    const int8x16_t wi = vldrbq_z_s8(w + i, inside);
    const int8x16_t pi = vreinterpretq_s8_u8(veorq_u8(vldrbq_z_u8(q + i, inside), middle));
    products = vmladavaq_s8(products, pi, wi);
    weights = vaddvaq_s8(weights, wi);
  }
  return products + (128 - zero_point) * weights;
}

#elif defined(__ARM_FEATURE_DSP)

uint32_t Load4(const void* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof(word));  // these CPUs read words from any address
  return word;
}

uint32_t Ror8(uint32_t word) { return word >> 8 | word << 24; }

// Four bytes at a time, as two pairs of i16: the even ones and the odd ones.
int32_t Dot(size_t in, const uint8_t* q, int32_t zero_point, const int8_t* w) {
  const uint32_t zeros = static_cast<uint32_t>(zero_point) * 0x00010001u;
  int32_t sum = 0;
  size_t i = 0;
  for (; i + 4 <= in; i += 4) {
    const uint32_t qi = Load4(q + i), wi = Load4(w + i);
    sum = __smlad(static_cast<int16x2_t>(__ssub16(static_cast<int16x2_t>(__uxtb16(qi)), static_cast<int16x2_t>(zeros))),
                  __sxtb16(static_cast<int8x4_t>(wi)), sum);
    sum = __smlad(static_cast<int16x2_t>(__ssub16(static_cast<int16x2_t>(__uxtb16(Ror8(qi))), static_cast<int16x2_t>(zeros))),
                  __sxtb16(static_cast<int8x4_t>(Ror8(wi))), sum);
  }
  for (; i < in; ++i) sum += (q[i] - zero_point) * w[i];
  return sum;
}

#else

int32_t Dot(size_t in, const uint8_t* q, int32_t zero_point, const int8_t* w) {
  int32_t sum = 0;
  for (size_t i = 0; i < in; ++i) sum += (q[i] - zero_point) * w[i];
  return sum;
}

#endif

}  // namespace

#if defined(__ARM_FEATURE_MVE)
const char kInt8BareName[] = "mve";
#elif defined(__ARM_FEATURE_DSP)
const char kInt8BareName[] = "dsp";
#else
const char kInt8BareName[] = "scalar";
#endif

void DenseQdu8Qc8wBare(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                       const float* weight_scale, const float* bias, float* y, size_t y_stride) {
  for (size_t o = 0; o < out; ++o) {  // outermost: a row of weights is read once
    const int8_t* w = weight + o * in;
    for (size_t r = 0; r < rows; ++r) {
      const float sum = static_cast<float>(Dot(in, q + r * in, params[r].zero_point, w));
      y[r * y_stride + o] = sum * (params[r].scale * weight_scale[o]) + (bias == nullptr ? 0.0f : bias[o]);
    }
  }
}

}  // namespace tarn
