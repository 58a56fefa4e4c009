#include "runtime/interpreter/packed_weights.h"

namespace tarn {

PackedWeights::Entry* PackedWeights::FindEntry(const DenseSpec& spec) const {
  Entry* entries = reinterpret_cast<Entry*>(table_.bytes().data());
  for (uint32_t i = 0; i < entries_; ++i) {
    const Entry& entry = entries[i];
    if (entry.weight == spec.weight && entry.scales == spec.scales && entry.block_scales == spec.block_scales &&
        entry.bias == spec.bias && entry.inputs == spec.inputs && entry.outputs == spec.outputs && entry.type == spec.type) {
      return &entries[i];
    }
  }
  return nullptr;
}

// Gives every pair of weight and bias tensors its place.
Status PackedWeights::Plan(const Environment& environment) {
  uint32_t layers = 0;
  TARN_RETURN_IF_ERROR(Program::VisitDense(environment, [&](const DenseSpec&, const DenseBytes&) {
    ++layers;
    return Ok();
  }));
  TARN_ASSIGN_OR_RETURN(table_, Block::Allocate(environment.allocator, layers * sizeof(Entry), "table of packed weights"));
  Entry* entries = reinterpret_cast<Entry*>(table_.bytes().data());
  return Program::VisitDense(environment, [&](const DenseSpec& spec, const DenseBytes& bytes) {
    if (bytes.packed == 0 || FindEntry(spec) != nullptr) return Ok();
    entries[entries_++] = {spec.weight, spec.scales,  spec.block_scales, spec.bias,
                           spec.inputs, spec.outputs, spec.type,         planned_bytes_};
    planned_bytes_ += bytes.packed;
    return Ok();
  });
}

Result<PackedBytes> PackedWeights::Measure(const Environment& environment) {
  PackedWeights weights;
  TARN_RETURN_IF_ERROR(weights.Plan(environment));
  return weights.bytes();
}

Result<PackedWeights> PackedWeights::Create(const Environment& environment) {
  PackedWeights weights;
  TARN_RETURN_IF_ERROR(weights.Plan(environment));
  TARN_ASSIGN_OR_RETURN(weights.memory_, Block::Allocate(environment.allocator, weights.planned_bytes_, "packed weights"));
  uint64_t packed_bytes = 0;  // entries are met in the order of their offsets, for the first time
  const Status status = Program::VisitDense(environment, [&](const DenseSpec& spec, const DenseBytes& bytes) {
    if (bytes.packed == 0 || weights.FindEntry(spec)->offset != packed_bytes) return Ok();
    const Span<uint8_t> place =
        weights.memory_.bytes().subspan(static_cast<size_t>(packed_bytes), static_cast<size_t>(bytes.packed));
    TARN_RETURN_IF_ERROR(environment.dense->pack(spec, place));
    packed_bytes += bytes.packed;
    environment.model->Forget({static_cast<const uint8_t*>(spec.weight), static_cast<size_t>(DenseWeightBytes(spec))});
    return Ok();
  });
  if (!status.ok()) return status;
  return weights;
}

const uint8_t* PackedWeights::Find(const DenseSpec& spec) const {
  const Entry* entry = FindEntry(spec);
  return entry == nullptr ? nullptr : memory_.bytes().data() + entry->offset;
}

}  // namespace tarn
