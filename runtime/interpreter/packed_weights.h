// The weights of a model's dense layers in the layout of the kernels of this CPU: made once per model, shared by its sessions.
#ifndef TARN_RUNTIME_INTERPRETER_PACKED_WEIGHTS_H_
#define TARN_RUNTIME_INTERPRETER_PACKED_WEIGHTS_H_

#include <cstdint>

#include "core/allocator.h"
#include "core/result.h"
#include "runtime/interpreter/instance.h"
#include "runtime/model/weight_check.h"

namespace tarn {

struct PackedBytes {
  uint64_t weights;
  uint64_t table;     // that finds them
  uint64_t in_place;  // weights of the layers that are not packed, as they lie in the model file; each counted once
};

class PackedWeights {
 public:
  // A distinct layer: all that its packed bytes depend on, and their place. A cache file holds entries as they are here.
  struct Entry {
    uint64_t weight;  // this and the next two: where the data lies in the model's weight section
    uint64_t scales;  // of rows or of blocks; UINT64_MAX: none
    uint64_t bias;    // UINT64_MAX: none
    uint32_t inputs;
    uint32_t outputs;
    uint32_t type;      // DenseWeights
    uint32_t in_place;  // 1: the layer wants its weight as it lies in the file
    uint64_t packed_offset;
    uint64_t packed_bytes;  // 0: read in place
  };

  PackedWeights() = default;
  PackedWeights(PackedWeights&&) = default;
  PackedWeights& operator=(PackedWeights&&) = default;

  // Layers of the draft, of which some may be the same.
  static Result<size_t> Count(const Instance::Draft& draft);
  // Takes the table for so many layers. Errors: TARN_OUT_OF_MEMORY.
  static Result<PackedWeights> Reserve(const Environment& environment, size_t layers);
  // Gives every distinct layer of the draft, of as many as were reserved, its place; reads no weights.
  Status Plan(const Instance::Draft& draft);
  // Reserve(), Plan() and Pack() into memory of the allocator. Errors: as Instance::Measure, and those of the dense layers.
  static Result<PackedWeights> Create(const Environment& environment);

  PackedBytes bytes() const { return {packed_bytes_, table_.bytes().size(), in_place_bytes_}; }
  Span<const Entry> entries() const { return {Entries(), count_}; }

  // Packs every layer into `memory`, bytes().weights bytes aligned to 64, and lets the pages of the originals go. What is packed
  // goes through `check` before (nullptr: nothing is checked), which the caller finishes.
  Status Pack(const Environment& environment, Span<uint8_t> memory, WeightCheck* check);
  // The same in memory of its own.
  Status Pack(const Environment& environment, WeightCheck* check);
  // They lie in `memory` already, which outlives this.
  void Use(const uint8_t* memory) { packed_ = memory; }

  // Once they are packed no op reads this tensor of the model.
  bool IsOnlyPacked(const Model& model, uint32_t tensor) const;

  // The packed weights of a layer over the same tensors; nullptr where it is read in place.
  const uint8_t* Find(const DenseSpec& spec) const;

 private:
  Entry* Entries() const { return reinterpret_cast<Entry*>(table_.bytes().data()); }
  Entry Describe(const DenseSpec& spec) const;
  // As much of the layer as packing depends on.
  DenseSpec SpecOf(const Entry& entry, const Kernels* kernels) const;
  const Entry* FindEntry(const DenseSpec& spec) const;
  bool IsReadInPlace(uint64_t weight) const;

  const uint8_t* weight_section_ = nullptr;  // of the model
  Block table_;
  uint32_t count_ = 0;
  uint64_t packed_bytes_ = 0;
  uint64_t in_place_bytes_ = 0;
  Block own_memory_;
  const uint8_t* packed_ = nullptr;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_PACKED_WEIGHTS_H_
