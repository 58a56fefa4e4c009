// The memory of an op over whole sequences: in f32 while it is written, in the dtype of the states where a source keeps it.
#ifndef TARN_RUNTIME_OPS_ATTENTION_NONCAUSAL_MEMORY_H_
#define TARN_RUNTIME_OPS_ATTENTION_NONCAUSAL_MEMORY_H_

#include "runtime/ops/attention/attention.h"

namespace tarn {

// Of one key/value head: S and z, or K~, V~ and their bias.
struct NoncausalMemory {
  float* matrices[2];  // [rows, columns], contiguous
  float* vector;       // nullptr: none
};

// The same to be read, as it is stored.
struct StoredMemory {
  StoredMemory(const NoncausalMemory& memory) : matrices{memory.matrices[0], memory.matrices[1]}, vector(memory.vector) {}

  StoredRows matrices[2];
  const float* vector;
};

// What such a memory is made of, and its states: first those of the matrices [Hkv, rows, columns], all F32, all F16 or all I8; with
// I8 their scales [Hkv, rows of all matrices] F32; then that of the vector [Hkv, elements] F32.
class NoncausalMemoryShape {
 public:
  void AddMatrix(const char* name, uint64_t rows, uint64_t columns) { matrices_[matrix_count_++] = {name, rows, columns}; }
  void SetVector(const char* name, uint64_t elements) { vector_ = {name, 1, elements}; }

  uint64_t elements() const;  // of the matrices

  // Holds the op's states against the shape. Returns how many there are. Errors: TARN_BAD_FORMAT.
  Result<uint32_t> ExpectStates(const PrepareContext& context, const Heads& heads);
  // A memory in scratch.
  NoncausalMemory Lay(Scratch* scratch) const;
  // Makes it what it is before the first key: all zeros.
  void Clear(const NoncausalMemory& memory) const;
  // Makes it that of a source.
  void Keep(const RunContext& context, const NoncausalMemory& memory, size_t source, size_t kv_head) const;
  // That of a source.
  StoredMemory Kept(const RunContext& context, size_t source, size_t kv_head) const;

 private:
  struct Part {
    const char* name;
    uint64_t rows;
    uint64_t columns;
    uint64_t elements() const { return rows * columns; }
  };

  uint32_t vector_state() const { return matrix_count_ + (dtype_ == DType::kI8 ? 1 : 0); }
  uint64_t rows() const;  // of all matrices
  // Matrix i of a source's head.
  uint8_t* Matrix(const RunContext& context, uint32_t i, size_t source, size_t kv_head) const;
  // The scales of its rows, which follow those of the matrices before it; nullptr: it has none.
  float* Scales(const RunContext& context, uint32_t i, size_t source, size_t kv_head) const;
  float* Vector(const RunContext& context, size_t source, size_t kv_head) const;

  Part matrices_[2] = {};
  uint32_t matrix_count_ = 0;
  Part vector_ = {};
  DType dtype_ = DType::kF32;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_NONCAUSAL_MEMORY_H_
