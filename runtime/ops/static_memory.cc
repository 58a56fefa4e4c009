#include "runtime/ops/static_memory.h"

#include <cstring>

#include "runtime/ops/row_store.h"

namespace tarn {

uint64_t StaticMemoryShape::elements() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < matrix_count_; ++i) sum += matrices_[i].rows * matrices_[i].columns;
  return sum;
}

uint64_t StaticMemoryShape::floats() const {
  uint64_t sum = ScratchFloats::Padded(vector_.columns);
  for (uint32_t i = 0; i < matrix_count_; ++i) sum += ScratchFloats::Padded(matrices_[i].rows * matrices_[i].columns);
  return sum;
}

Result<uint32_t> StaticMemoryShape::ExpectStates(const PrepareContext& context, const Heads& heads) {
  const uint64_t kv_heads = heads.kv_heads();
  uint64_t rows = 0;
  for (uint32_t i = 0; i < matrix_count_; ++i) {
    const Part& part = matrices_[i];
    TARN_ASSIGN_OR_RETURN(const DType dtype, context.ExpectTypedSourceState(i, part.name, {kv_heads, part.rows, part.columns}));
    if (i > 0 && dtype != dtype_) {
      return Error(TARN_BAD_FORMAT, "states %s and %s have different dtypes", matrices_[0].name, part.name);
    }
    dtype_ = dtype;
    rows += part.rows;
  }
  if (dtype_ == DType::kI8) TARN_RETURN_IF_ERROR(context.ExpectSourceState(matrix_count_, "scales", {kv_heads, rows}));
  if (vector_.columns == 0) return vector_state();
  TARN_RETURN_IF_ERROR(context.ExpectSourceState(vector_state(), vector_.name, {kv_heads, vector_.columns}));
  return vector_state() + 1;
}

StaticMemory StaticMemoryShape::Layout(float* scratch) const {
  ScratchFloats pieces(scratch);
  StaticMemory memory{};
  for (uint32_t i = 0; i < matrix_count_; ++i) memory.matrices[i] = pieces.Take(matrices_[i].rows * matrices_[i].columns);
  if (vector_.columns > 0) memory.vector = pieces.Take(vector_.columns);
  return memory;
}

StaticMemory StaticMemoryShape::Clear(float* scratch) const {
  std::memset(scratch, 0, static_cast<size_t>(floats()) * sizeof(float));
  return Layout(scratch);
}

template <typename F>
void StaticMemoryShape::ForEachMatrix(const RunContext& context, const StaticMemory& memory, size_t source, size_t kv_head,
                                      const F& f) const {
  float* scales = nullptr;
  if (dtype_ == DType::kI8) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < matrix_count_; ++i) rows += matrices_[i].rows;
    scales = context.states[matrix_count_].f32(source) + kv_head * rows;
  }
  for (uint32_t i = 0; i < matrix_count_; ++i) {
    // Without scales the rows are one long one.
    const size_t rows = static_cast<size_t>(scales == nullptr ? 1 : matrices_[i].rows);
    const size_t columns = static_cast<size_t>(matrices_[i].rows * matrices_[i].columns) / rows;
    const size_t row_bytes = columns * DTypeBits(dtype_) / 8;
    uint8_t* kept = context.states[i].bytes(source) + kv_head * rows * row_bytes;
    for (size_t row = 0; row < rows; ++row) {
      f(columns, memory.matrices[i] + row * columns, kept + row * row_bytes, scales == nullptr ? nullptr : scales + row);
    }
    if (scales != nullptr) scales += rows;
  }
}

void StaticMemoryShape::Keep(const RunContext& context, const StaticMemory& memory, size_t source, size_t kv_head) const {
  ForEachMatrix(context, memory, source, kv_head, [&](size_t columns, const float* row, uint8_t* kept, float* scale) {
    StoreRow(*context.kernels, dtype_, columns, row, kept, scale);
  });
  if (memory.vector == nullptr) return;
  float* kept = context.states[vector_state()].f32(source) + kv_head * vector_.columns;
  std::memcpy(kept, memory.vector, static_cast<size_t>(vector_.columns) * sizeof(float));
}

StaticMemory StaticMemoryShape::Fetch(const RunContext& context, size_t source, size_t kv_head, float* scratch) const {
  StaticMemory memory{};
  if (is_f32()) {
    for (uint32_t i = 0; i < matrix_count_; ++i) {
      memory.matrices[i] = context.states[i].f32(source) + kv_head * matrices_[i].rows * matrices_[i].columns;
    }
  } else {
    memory = Layout(scratch);
    ForEachMatrix(context, memory, source, kv_head, [&](size_t columns, float* row, const uint8_t* kept, const float* scale) {
      LoadRow(*context.kernels, dtype_, columns, kept, scale, row);
    });
  }
  if (vector_.columns > 0) memory.vector = context.states[vector_state()].f32(source) + kv_head * vector_.columns;
  return memory;
}

}  // namespace tarn
