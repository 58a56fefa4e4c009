#include "runtime/ops/attention/noncausal_memory.h"

#include <cstring>

#include "runtime/ops/attention/row_store.h"

namespace tarn {

uint64_t NoncausalMemoryShape::elements() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < matrix_count_; ++i) sum += matrices_[i].elements();
  return sum;
}

Result<uint32_t> NoncausalMemoryShape::ExpectStates(const PrepareContext& context, const Heads& heads) {
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

NoncausalMemory NoncausalMemoryShape::Lay(Scratch* scratch) const {
  NoncausalMemory memory{};
  for (uint32_t i = 0; i < matrix_count_; ++i) memory.matrices[i] = scratch->Take(matrices_[i].elements());
  if (vector_.columns > 0) memory.vector = scratch->Take(vector_.columns);
  return memory;
}

void NoncausalMemoryShape::Clear(const NoncausalMemory& memory) const {
  const auto clear = [](float* data, const Part& part) {
    std::memset(data, 0, static_cast<size_t>(part.elements()) * sizeof(float));
  };
  for (uint32_t i = 0; i < matrix_count_; ++i) clear(memory.matrices[i], matrices_[i]);
  if (memory.vector != nullptr) clear(memory.vector, vector_);
}

uint64_t NoncausalMemoryShape::rows() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < matrix_count_; ++i) sum += matrices_[i].rows;
  return sum;
}

uint8_t* NoncausalMemoryShape::Matrix(const RunContext& context, uint32_t i, size_t source, size_t kv_head) const {
  return context.states[i].bytes(source) + kv_head * matrices_[i].rows * matrices_[i].columns * DTypeBits(dtype_) / 8;
}

float* NoncausalMemoryShape::Scales(const RunContext& context, uint32_t i, size_t source, size_t kv_head) const {
  if (dtype_ != DType::kI8) return nullptr;
  float* scales = context.states[matrix_count_].f32(source) + kv_head * rows();
  for (uint32_t before = 0; before < i; ++before) scales += matrices_[before].rows;
  return scales;
}

float* NoncausalMemoryShape::Vector(const RunContext& context, size_t source, size_t kv_head) const {
  if (vector_.columns == 0) return nullptr;
  return context.states[vector_state()].f32(source) + kv_head * vector_.columns;
}

void NoncausalMemoryShape::Keep(const RunContext& context, const NoncausalMemory& memory, size_t source, size_t kv_head) const {
  for (uint32_t i = 0; i < matrix_count_; ++i) {
    const size_t columns = static_cast<size_t>(matrices_[i].columns), row_bytes = columns * DTypeBits(dtype_) / 8;
    uint8_t* kept = Matrix(context, i, source, kv_head);
    float* scales = Scales(context, i, source, kv_head);
    for (size_t row = 0; row < matrices_[i].rows; ++row) {
      StoreRow(*context.kernels, dtype_, columns, memory.matrices[i] + row * columns, kept + row * row_bytes,
               scales == nullptr ? nullptr : scales + row);
    }
  }
  if (memory.vector == nullptr) return;
  std::memcpy(Vector(context, source, kv_head), memory.vector, static_cast<size_t>(vector_.columns) * sizeof(float));
}

StoredMemory NoncausalMemoryShape::Kept(const RunContext& context, size_t source, size_t kv_head) const {
  StoredMemory memory(NoncausalMemory{});
  for (uint32_t i = 0; i < matrix_count_; ++i) {
    memory.matrices[i] = {RowTypeOf(dtype_), Matrix(context, i, source, kv_head), Scales(context, i, source, kv_head)};
  }
  memory.vector = Vector(context, source, kv_head);
  return memory;
}

}  // namespace tarn
