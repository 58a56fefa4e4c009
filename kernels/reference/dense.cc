// Fully connected layers, and the dynamic quantization of their inputs.
#include <algorithm>
#include <cmath>

#include "core/dtype.h"
#include "kernels/quantization.h"
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

void DenseF16(size_t rows, size_t in, size_t out, const float* x, size_t x_stride, const uint16_t* weight, const float* bias,
              float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < out; ++o) {
      double sum = bias == nullptr ? 0.0 : static_cast<double>(bias[o]);
      for (size_t i = 0; i < in; ++i) sum += static_cast<double>(x[r * x_stride + i]) * FromF16(weight[o * in + i]);
      y[r * y_stride + o] = static_cast<float>(sum);
    }
  }
}

// A number that fits u8, for any x but NaN.
static float ClampToU8(float x) { return x > 0.0f ? std::min(x, 255.0f) : 0.0f; }

static Qdu8Row ChooseRow(size_t n, const float* x) {
  float low = x[0], high = x[0];
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return ChooseQdu8(x[i], x[i]);
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  return ChooseQdu8(low, high);
}

static uint8_t QuantizeElement(float x, const Qdu8Row& row) {
  if (std::isnan(row.params.scale)) return 0;
  return static_cast<uint8_t>(ClampToU8(std::nearbyint(x * row.inverse) + static_cast<float>(row.params.zero_point)));
}

void QuantizeQdu8(size_t n, const float* x, size_t parts, uint8_t* q, Qdu8* params) {
  const Qdu8Row row = ChooseRow(n, x);
  for (size_t i = 0; i < n; ++i) q[i / parts + i % parts * (n / parts)] = QuantizeElement(x[i], row);
  *params = row.params;
}

void QuantizeQd8(size_t n, const float* x, int8_t* q, Qdu8* params) {
  const Qdu8Row row = ChooseRow(n, x);
  for (size_t i = 0; i < n; ++i) q[i] = static_cast<int8_t>(QuantizeElement(x[i], row) - 128);
  *params = row.params;
}

// y = scale * weight_scale * sum (q - zero_point) w + bias
void DenseQdu8Qc8w(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const int8_t* weight,
                   const float* weight_scale, const float* bias, float* y, size_t y_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < out; ++o) {
      int64_t sum = 0;
      for (size_t i = 0; i < in; ++i) sum += (q[r * in + i] - params[r].zero_point) * weight[o * in + i];
      const double product = static_cast<double>(sum) * static_cast<double>(params[r].scale) * static_cast<double>(weight_scale[o]);
      y[r * y_stride + o] = static_cast<float>(product + (bias == nullptr ? 0.0 : static_cast<double>(bias[o])));
    }
  }
}

// y = scale * sum (q - zero_point) block_scale w + bias, where q stands in `parts`; of int4 (bits 4), int3 or int2.
static void DenseBlocks(const PlaneArgs& a, size_t parts) {
  const size_t row_bytes = a.in / 8 * a.bits;
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t o = 0; o < a.out; ++o) {
      const uint16_t* scales = a.block_scales + o * (a.in / kScaleBlock);
      double sum = 0.0;
      for (size_t i = 0; i < a.in; ++i) {
        const int x = a.q[r * a.in + i / parts + i % parts * (a.in / parts)] - a.params[r].zero_point;
        sum += BlockScale(scales, i) * (x * BlockWeightAt(a.bits, a.weight + o * row_bytes, a.in, i));
      }
      const double product = sum * static_cast<double>(a.params[r].scale);
      a.y[r * a.y_stride + o] = static_cast<float>(product + (a.bias == nullptr ? 0.0 : static_cast<double>(a.bias[o])));
    }
  }
}

void DenseQdu8Qb4w(size_t rows, size_t in, size_t out, const uint8_t* q, const Qdu8* params, const uint8_t* weight,
                   const uint16_t* block_scales, const float* bias, float* y, size_t y_stride) {
  DenseBlocks({4, rows, in, out, q, nullptr, params, weight, block_scales, bias, y, y_stride}, 2);
}

void DenseQdu8Planes(const PlaneArgs& a) { DenseBlocks(a, 8); }

}  // namespace tarn::reference
