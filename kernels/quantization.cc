// Compiled without fused multiply-adds: a*b+c rounds twice, as it does in XNNPACK.
#include "kernels/quantization.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tarn {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

// The rule of XNNPACK (src/xnnpack/quantization.h, xnn_f32_qd8_asymmetric_quantization_params, and xnn_compute_f32_qd8_convert), to
// the bit, so that a model loses the same on both sides of the dense seam: the range always contains 0, and the zero point is
// rounded from the end of the range where that errs less. Elements are multiplied by the inverse of the scale, which was rounded
// itself, not by 255 / range: the two often differ in the last bit. The numbers are formed for int8 and moved to u8 last.
Qdu8Row ChooseQdu8(float low, float high) {
  if (!(high - low <= kLargest)) return {{kNan, 0}, 0.0f};
  const float bottom = std::min(low, 0.0f);
  const float top = std::max(high, 0.0f);
  float steps = 255.0f / (top - bottom);  // per unit of x
  // A range that is 0, or so small that this or its inverse's inverse overflows, is quantized as if it were 255 wide: every element
  // becomes 0.
  if (!(1.0f / (1.0f / steps) <= kLargest)) steps = 1.0f;
  const float scale = 1.0f / steps;
  const float from_bottom = -128.0f - bottom * steps;
  const float from_top = 127.0f - top * steps;
  const float bottom_error = -128.0f + bottom * steps;
  const float top_error = 127.0f + top * steps;
  const float zero = std::nearbyint(bottom_error + top_error > 0.0f ? from_bottom : from_top) + 128.0f;
  return {{scale, static_cast<int32_t>(std::min(std::max(zero, 0.0f), 255.0f))}, 1.0f / scale};
}

// A row that is not finite is stored as zeros with a scale that is not a number, so that whoever reads it sees it.
// A row whose inverse overflows (zeros, or nothing above 3.8e-37) is stored as zeros.
I8Row ChooseI8(float largest) {
  if (!(largest <= kLargest)) return {kNan, 0.0f};
  const float inverse = 127.0f / largest;
  if (!(inverse <= kLargest)) return {0.0f, 0.0f};
  return {largest / 127.0f, inverse};
}

}  // namespace tarn
