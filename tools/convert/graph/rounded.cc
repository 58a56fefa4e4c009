#include "tools/convert/graph/rounded.h"

#include <cstring>

#include "tools/convert/checkpoint/half.h"
#include "tools/convert/graph/quantize.h"

namespace tarn::convert {

RoundedMatrix::RoundedMatrix(format::DType type, size_t row_count, size_t column_count)
    : dtype(type), rows(row_count), columns(column_count) {
  const bool is_int4 = dtype == format::DType::I4;
  values.resize(is_int4 ? rows * columns / 2 : rows * columns);
  scales.resize(is_int4 ? rows * (columns / kInt4Block) * sizeof(uint16_t) : rows * sizeof(float));
}

void RoundedMatrix::Read(size_t row, float* out) const {
  if (dtype == format::DType::I8) {
    float scale;
    std::memcpy(&scale, &scales[row * sizeof(scale)], sizeof(scale));
    for (size_t i = 0; i < columns; ++i) out[i] = scale * static_cast<float>(static_cast<int8_t>(values[row * columns + i]));
    return;
  }
  for (size_t i = 0; i < columns; ++i) {
    const size_t at = row * columns + i;
    uint16_t scale;
    std::memcpy(&scale, &scales[at / kInt4Block * sizeof(scale)], sizeof(scale));
    const int q = (values[at / 2] >> (at % 2 * 4) & 15) - 8;
    out[i] = FloatOfBf16(scale) * static_cast<float>(q);
  }
}

RoundedMatrix RoundAlone(const std::vector<float>& weights, size_t columns, format::DType dtype) {
  RoundedMatrix out(dtype, weights.size() / columns, columns);
  const bool is_int4 = dtype == format::DType::I4;
  const size_t step = is_int4 ? kInt4Block : columns;
  for (size_t i = 0; i < weights.size() / step; ++i) {
    if (is_int4) {
      const uint16_t scale = QuantizeBlock(&weights[i * step], &out.values[i * step / 2]);
      std::memcpy(&out.scales[i * sizeof(scale)], &scale, sizeof(scale));
    } else {
      const float scale = QuantizeRow(&weights[i * step], step, reinterpret_cast<int8_t*>(&out.values[i * step]));
      std::memcpy(&out.scales[i * sizeof(scale)], &scale, sizeof(scale));
    }
  }
  return out;
}

}  // namespace tarn::convert
