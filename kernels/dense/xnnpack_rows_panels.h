// What the kernels of xnnpack_rows.h have in common, and their names.
#ifndef TARN_KERNELS_DENSE_XNNPACK_ROWS_PANELS_H_
#define TARN_KERNELS_DENSE_XNNPACK_ROWS_PANELS_H_

#include <cstring>
#include <iterator>

#include "kernels/dense/xnnpack_rows.h"

namespace tarn {

// Each where its CPU is one that this library is built for.
extern const RowKernel kVnniInt4Rows, kVnniInt8Rows, kAvx2Int4Rows, kAvx2Int8Rows, kNeonInt4Rows;

// One of the passes over a panel, over rows of x from `row` on.
struct PanelPass {
  size_t row, number, count;
};

// One panel times the rows of a pass; `outputs` of the panel's are there.
using MultiplyPanel = void (*)(const QuantizedRows& x, const PanelPass& pass, const uint8_t* panel, size_t outputs, float* y,
                               size_t y_stride);

// By[i] takes i + 1 rows. As few passes as that allows, with about equal rows.
template <const auto& By>
void MultiplyRows(const QuantizedRows& x, const uint8_t* panel, size_t outputs, float* y, size_t y_stride) {
  const size_t count = (x.rows + std::size(By) - 1) / std::size(By);
  for (size_t number = 0; number < count; ++number) {
    const PanelPass pass = {number * x.rows / count, number, count};
    const size_t rows = (number + 1) * x.rows / count - pass.row;
    By[rows - 1](x, pass, panel, outputs, y + pass.row * y_stride, y_stride);
  }
}

#if defined(__x86_64__)
// Order of the nibbles of int4: [2][outputs][8], byte k of half h of a block holds inputs 16h + k (low) and 16h + 8 + k (high).
constexpr size_t kHalf = kScaleBlock / 2;

inline int64_t LoadEightBytes(const uint8_t* from) {
  int64_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
#endif

}  // namespace tarn

#endif  // TARN_KERNELS_DENSE_XNNPACK_ROWS_PANELS_H_
