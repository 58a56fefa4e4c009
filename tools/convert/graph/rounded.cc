#include "tools/convert/graph/rounded.h"

#include <cstring>

#include "tools/convert/checkpoint/half.h"
#include "tools/convert/graph/quantize.h"

namespace tarn::convert {

RoundedMatrix::RoundedMatrix(format::DType type, size_t row_count, size_t column_count)
    : dtype(type), rows(row_count), columns(column_count) {
  values.resize(rows * RowBytes());
  scales.resize(IsBlockwise(dtype) ? rows * (columns / kScaleBlock) * sizeof(uint16_t) : rows * sizeof(float));
}

size_t RoundedMatrix::RowBytes() const { return IsBlockwise(dtype) ? PackedBytes(dtype, columns) : columns; }

void RoundedMatrix::Read(size_t row, float* out) const {
  if (dtype == format::DType::I8) {
    float scale;
    std::memcpy(&scale, &scales[row * sizeof(scale)], sizeof(scale));
    for (size_t i = 0; i < columns; ++i) out[i] = scale * static_cast<float>(static_cast<int8_t>(values[row * columns + i]));
    return;
  }
  for (size_t i = 0; i < columns; ++i) {
    uint16_t scale;
    std::memcpy(&scale, &scales[(row * columns + i) / kScaleBlock * sizeof(scale)], sizeof(scale));
    out[i] = FloatOfBf16(scale) * static_cast<float>(PackedAt(dtype, &values[row * RowBytes()], columns, i));
  }
}

void RoundedMatrix::Store(size_t row, const int8_t* q, const uint16_t* block_scales) {
  PackRow(dtype, q, columns, &values[row * RowBytes()]);
  const size_t bytes = columns / kScaleBlock * sizeof(uint16_t);
  std::memcpy(&scales[row * bytes], block_scales, bytes);
}

void RoundedMatrix::Store(size_t row, const int8_t* q, float scale) {
  std::memcpy(&values[row * columns], q, columns);
  std::memcpy(&scales[row * sizeof(scale)], &scale, sizeof(scale));
}

RoundedMatrix RoundAlone(const std::vector<float>& weights, size_t columns, format::DType dtype) {
  RoundedMatrix out(dtype, weights.size() / columns, columns);
  std::vector<int8_t> q(columns);
  std::vector<uint16_t> block_scales(columns / kScaleBlock);
  for (size_t row = 0; row < out.rows; ++row) {
    const float* w = &weights[row * columns];
    if (IsBlockwise(dtype)) {
      QuantizeBlocks(dtype, w, columns, q.data(), block_scales.data());
      out.Store(row, q.data(), block_scales.data());
    } else {
      const float scale = QuantizeRow(w, columns, q.data());
      out.Store(row, q.data(), scale);
    }
  }
  return out;
}

}  // namespace tarn::convert
