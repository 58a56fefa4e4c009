// Matrices that are quantized already when a model is written.
#ifndef TARN_TOOLS_CONVERT_GRAPH_ROUNDED_H_
#define TARN_TOOLS_CONVERT_GRAPH_ROUNDED_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/tarn_generated.h"

namespace tarn::convert {

// A matrix [rows, columns] as a file holds it.
struct RoundedMatrix {
  // Zeros.
  RoundedMatrix(format::DType type, size_t row_count, size_t column_count);

  format::DType dtype;  // I8, I4, I3 or I2
  size_t rows, columns;
  std::vector<uint8_t> values;  // rows of int8, or as PackRow() makes them
  std::vector<uint8_t> scales;  // f32 [rows], or bf16 [rows, columns / kScaleBlock]

  // Row `row` as it will be computed with.
  void Read(size_t row, float* out /* [columns] */) const;
  // A row of numbers with its scales: one per block, bf16, or for I8 one.
  void Store(size_t row, const int8_t* q /* [columns] */, const uint16_t* block_scales);
  void Store(size_t row, const int8_t* q, float scale);

  size_t RowBytes() const;
};

// Every row or block rounded for itself (quantize.h). `dtype`: I8, or a blockwise one, of which `columns` is a multiple of
// kScaleBlock.
RoundedMatrix RoundAlone(const std::vector<float>& weights, size_t columns, format::DType dtype);

// By the names of their tensors.
using RoundedMatrices = std::map<std::string, RoundedMatrix>;

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_GRAPH_ROUNDED_H_
