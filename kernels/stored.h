// Matrices as states and rings store them: in f32, in f16, or in int8 with a scale per row. Kernels read them as they are.
#ifndef TARN_KERNELS_STORED_H_
#define TARN_KERNELS_STORED_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

enum class RowType : uint8_t { kF32 = 0, kF16 = 1, kI8 = 2 };

// Rows that are only read. What an element is: the f32; the f16, which f32 holds; scale * q, rounded to f32.
struct StoredRows {
  // Floats are such rows, wherever they are.
  StoredRows(const float* f32) : data(f32) {}
  StoredRows(RowType row_type, const void* rows, const float* row_scales) : data(rows), scales(row_scales), type(row_type) {}

  const void* data;
  const float* scales = nullptr;  // [rows], kI8 only
  RowType type = RowType::kF32;
};

// Rows that a step of a recurrence reads and writes: f32 or f16. A new value of an f16 row is rounded once, when it is stored.
struct StateRows {
  StateRows(float* f32) : data(f32) {}
  StateRows() = default;
  StateRows(RowType row_type, void* rows) : data(rows), type(row_type) {}

  operator StoredRows() const { return {type, data, nullptr}; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  void* data;
  RowType type = RowType::kF32;
};

}  // namespace tarn

#endif  // TARN_KERNELS_STORED_H_
