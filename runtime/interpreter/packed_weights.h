// The weights of a model's dense layers in the layout of the kernels of this CPU: made once per model, shared by its sessions.
#ifndef TARN_RUNTIME_INTERPRETER_PACKED_WEIGHTS_H_
#define TARN_RUNTIME_INTERPRETER_PACKED_WEIGHTS_H_

#include <cstdint>

#include "runtime/core/allocator.h"
#include "runtime/core/result.h"
#include "runtime/interpreter/program.h"

namespace tarn {

struct PackedBytes {
  uint64_t weights;
  uint64_t table;  // that finds them
};

class PackedWeights {
 public:
  PackedWeights() = default;
  PackedWeights(PackedWeights&&) = default;
  PackedWeights& operator=(PackedWeights&&) = default;

  // What Create will take; reads no weights. Errors: as Program::Measure.
  static Result<PackedBytes> Measure(const Environment& environment);
  // Packs every dense layer once, layers over the same tensors together, and lets the pages of the originals go.
  static Result<PackedWeights> Create(const Environment& environment);

  PackedBytes bytes() const { return {planned_bytes_, table_.bytes().size()}; }
  // The packed weights of a layer over the same tensors; nullptr where the backend packs nothing.
  const uint8_t* Find(const DenseSpec& spec) const;

 private:
  // What the packed bytes depend on. Tensors of a hostile file may share their data with others of another shape.
  struct Entry {
    const void* weight;
    const float* scales;
    const uint16_t* block_scales;
    const float* bias;
    size_t inputs;
    size_t outputs;
    DenseWeights type;
    uint64_t offset;
  };

  Status Plan(const Environment& environment);
  Entry* FindEntry(const DenseSpec& spec) const;

  Block table_;
  uint32_t entries_ = 0;
  uint64_t planned_bytes_ = 0;
  Block memory_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_PACKED_WEIGHTS_H_
