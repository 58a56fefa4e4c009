// Fully connected layers, and the dynamic quantization of their inputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reference.h"

namespace tarn::reference {

void DenseF32(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const float* weight, const float* bias, float* y,
              size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < out; ++o) {
      double sum = bias == nullptr ? 0.0 : static_cast<double>(bias[o]);
      for (size_t i = 0; i < in; ++i) sum += static_cast<double>(x[r * x_stride + i]) * weight[o * in + i];
      y[r * y_stride + o] = static_cast<float>(sum);
    }
  }
}

// A number that fits int8, for any x: NaN, which a damaged model may give, becomes -128.
static float ClampToInt8(float x) { return x > -128.0f ? std::min(x, 127.0f) : -128.0f; }

// The rule of XNNPACK (src/xnnpack/quantization.h, xnn_f32_qd8_asymmetric_quantization_params), so that a model loses the same on
// both sides of the dense seam: the range always contains 0, and the zero point is rounded from the end of the range where that
// errs less.
Qd8 ChooseQd8(float low, float high) {
  const float bottom = std::min(low, 0.0f);
  const float top = std::max(high, 0.0f);
  // A range that is 0, or so small that its inverse overflows, is quantized as if it were 255 wide: every element becomes 0.
  float inverse = 255.0f / (top - bottom);
  if (!(inverse <= std::numeric_limits<float>::max())) inverse = 1.0f;
  const float from_bottom = -128.0f - bottom * inverse;
  const float from_top = 127.0f - top * inverse;
  const float bottom_error = -128.0f + bottom * inverse;
  const float top_error = 127.0f + top * inverse;
  const float zero = bottom_error + top_error > 0.0f ? from_bottom : from_top;
  return {1.0f / inverse, inverse, static_cast<int32_t>(std::nearbyint(ClampToInt8(zero)))};
}

void QuantizeQd8(size_t n, const float* x, int8_t* q, float* scale, int32_t* zero_point) {
  const Qd8 p = ChooseQd8(*std::min_element(x, x + n), *std::max_element(x, x + n));
  for (size_t i = 0; i < n; ++i) {
    const float value = std::nearbyint(x[i] * p.inverse) + static_cast<float>(p.zero);
    q[i] = static_cast<int8_t>(ClampToInt8(value));
  }
  *scale = p.scale;
  *zero_point = p.zero;
}

// y = scale * weight_scale * sum (q - zero_point) w + bias
void DenseQd8Qc8w(size_t in, size_t out, const int8_t* q, float scale, int32_t zero_point, const int8_t* weight,
                  const float* weight_scale, const float* bias, float* y) {
  for (size_t o = 0; o < out; ++o) {
    int32_t sum = 0;
    for (size_t i = 0; i < in; ++i) sum += (q[i] - zero_point) * weight[o * in + i];
    const double product = static_cast<double>(sum) * static_cast<double>(scale) * static_cast<double>(weight_scale[o]);
    y[o] = static_cast<float>(product + (bias == nullptr ? 0.0 : static_cast<double>(bias[o])));
  }
}

}  // namespace tarn::reference
