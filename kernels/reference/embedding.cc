// Rows of embedding tables, rows that are stored, and positions.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/dtype.h"
#include "core/planes.h"
#include "kernels/quantization.h"
#include "kernels/reference/reference.h"

namespace tarn::reference {
namespace {

uint16_t ToF16(float x) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7E00);
  const double size = std::fmin(std::fabs(static_cast<double>(x)), 65504.0);
  if (size == 0.0) return static_cast<uint16_t>(sign);
  int exponent;
  std::frexp(size, &exponent);  // size = f * 2^exponent, 1/2 <= f < 1
  // Normal numbers have 11 bits, the first of which is implied; below 2^-14 the steps stay those of 2^-14. A fraction that rounds
  // up to 2^11 runs over into the exponent, as it should.
  const int step = std::max(exponent - 11, -24);
  const uint32_t steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -step)));
  return static_cast<uint16_t>(sign + static_cast<uint32_t>(step + 24) * 1024 + steps);
}

}  // namespace

// IEEE 754 binary16: sign, 5 bits of exponent (bias 15), 10 bits of fraction.
double FromF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value;
  if (exponent == 31) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits >> 15) != 0 ? -value : value;
}

// The element of even index is the low nibble.
int I4At(const uint8_t* row, size_t i) { return (i % 2 == 0 ? row[i / 2] & 15 : row[i / 2] >> 4) - 8; }

// bf16 is the upper half of an f32.
double BlockScale(const uint16_t* block_scales, size_t i) {
  const uint32_t bits = uint32_t{block_scales[i / kScaleBlock]} << 16;
  float scale;
  std::memcpy(&scale, &bits, sizeof(scale));
  return static_cast<double>(scale);
}

void ScaleF32(size_t n, const float* x, float scale, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = scale * x[i];
}

void ScaleF16(size_t n, const uint16_t* x, float scale, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(scale) * FromF16(x[i]));
}

void ScaleI8(size_t n, const int8_t* x, float scale, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = scale * static_cast<float>(x[i]);
}

int BlockWeightAt(unsigned bits, const uint8_t* row, size_t n, size_t i) {
  return bits == 4 ? I4At(row, i) : PlaneWeightAt(bits, row, n, i);
}

void ScaleI4(size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y) {
  ScalePlanes(4, n, x, block_scales, scale, y);
}

void ScalePlanes(unsigned bits, size_t n, const uint8_t* x, const uint16_t* block_scales, float scale, float* y) {
  for (size_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>(static_cast<double>(scale) * BlockScale(block_scales, i) * BlockWeightAt(bits, x, n, i));
  }
}

float At(const StoredRows& rows, size_t stride, size_t row, size_t i) {
  const size_t at = row * stride + i;
  switch (rows.type) {
    case RowType::kF32:
      return static_cast<const float*>(rows.data)[at];
    case RowType::kF16:
      return static_cast<float>(FromF16(static_cast<const uint16_t*>(rows.data)[at]));
    case RowType::kI8:
      return rows.scales[row] * static_cast<float>(static_cast<const int8_t*>(rows.data)[at]);
  }
  return 0.0f;
}

void Put(const StateRows& rows, size_t stride, size_t row, size_t i, float x) {
  const size_t at = row * stride + i;
  if (rows.type == RowType::kF16) {
    rows.as<uint16_t>()[at] = ToF16(x);
  } else {
    rows.as<float>()[at] = x;
  }
}

void F32ToF16(size_t n, const float* x, uint16_t* y) {
  for (size_t i = 0; i < n; ++i) y[i] = ToF16(x[i]);
}

void QuantizeI8(size_t n, const float* x, int8_t* q, float* scale) {
  float largest = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const float size = std::fabs(x[i]);
    if (std::isnan(size) || size > largest) largest = size;  // nothing is larger than a NaN
  }
  const I8Row row = ChooseI8(largest);
  for (size_t i = 0; i < n; ++i) q[i] = row.inverse == 0.0f ? 0 : static_cast<int8_t>(std::nearbyint(x[i] * row.inverse));
  *scale = row.scale;
}

// The C library reduces any f64 angle exactly.
void Sinusoid(size_t n, double position, const double* frequency, float* sine, float* cosine) {
  for (size_t i = 0; i < n; ++i) {
    const double angle = position * frequency[i];
    sine[i] = static_cast<float>(std::sin(angle));
    cosine[i] = static_cast<float>(std::cos(angle));
  }
}

// Su et al. 2021, eq. 34, in the halves layout of GPT-NeoX: element i is paired with element i + d/2.
void Rope(size_t rows, size_t heads, size_t d, const float* x, size_t x_stride, const float* angles, float* y, size_t y_stride) {
  const size_t half = d / 2;
  for (size_t r = 0; r < rows; ++r) {
    const float* cosine = angles + r * d;
    const float* sine = cosine + half;
    for (size_t h = 0; h < heads; ++h) {
      const float* from = x + r * x_stride + h * d;
      float* to = y + r * y_stride + h * d;
      for (size_t i = 0; i < half; ++i) {
        const double x1 = from[i];
        const double x2 = from[half + i];
        to[i] = static_cast<float>(x1 * cosine[i] - x2 * sine[i]);
        to[half + i] = static_cast<float>(x1 * sine[i] + x2 * cosine[i]);
      }
    }
  }
}

}  // namespace tarn::reference
