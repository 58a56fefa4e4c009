#include "runtime/interpreter/packed_weights.h"

#include <cstring>

namespace tarn {
namespace {

static_assert(sizeof(PackedWeights::Entry) == 56, "entries are compared and written as bytes");

// Everything before the place.
bool IsSameLayer(const PackedWeights::Entry& a, const PackedWeights::Entry& b) {
  return std::memcmp(&a, &b, offsetof(PackedWeights::Entry, packed_offset)) == 0;
}

const uint8_t* WeightSection(const Model& model) {
  return model.graph().tensors()->size() == 0 ? nullptr : model.tensor(0).data - model.graph().tensors()->Get(0)->offset();
}

}  // namespace

PackedWeights::Entry PackedWeights::Describe(const DenseSpec& spec) const {
  const auto offset = [this](const void* data) {
    return data == nullptr ? UINT64_MAX : static_cast<uint64_t>(static_cast<const uint8_t*>(data) - weight_section_);
  };
  const void* scales = spec.scales != nullptr ? static_cast<const void*>(spec.scales) : spec.block_scales;
  return {offset(spec.weight),
          offset(scales),
          offset(spec.bias),
          static_cast<uint32_t>(spec.inputs),
          static_cast<uint32_t>(spec.outputs),
          static_cast<uint32_t>(spec.type),
          0,
          0,
          0};
}

const PackedWeights::Entry* PackedWeights::FindEntry(const DenseSpec& spec) const {
  const Entry wanted = Describe(spec);
  for (const Entry& entry : entries()) {
    if (IsSameLayer(entry, wanted)) return &entry;
  }
  return nullptr;
}

bool PackedWeights::IsReadInPlace(uint64_t weight) const {
  for (const Entry& entry : entries()) {
    if (entry.packed_bytes == 0 && entry.weight == weight) return true;
  }
  return false;
}

Result<PackedWeights> PackedWeights::Plan(const Environment& environment) {
  uint32_t layers = 0;
  TARN_RETURN_IF_ERROR(Instance::VisitDense(environment, [&](const DenseSpec&, const DenseBytes&) {
    ++layers;
    return Ok();
  }));
  PackedWeights plan;
  plan.weight_section_ = WeightSection(*environment.model);
  TARN_ASSIGN_OR_RETURN(plan.table_, Block::Allocate(environment.allocator, layers * sizeof(Entry), "table of packed weights"));
  TARN_RETURN_IF_ERROR(Instance::VisitDense(environment, [&](const DenseSpec& spec, const DenseBytes& bytes) {
    if (plan.FindEntry(spec) != nullptr) return Ok();
    Entry entry = plan.Describe(spec);
    if (bytes.packed == 0 && !plan.IsReadInPlace(entry.weight)) {
      plan.in_place_bytes_ += DenseWeightBytes(spec) + DenseScaleBytes(spec);
    }
    entry.packed_offset = plan.packed_bytes_;
    entry.packed_bytes = bytes.packed;
    plan.packed_bytes_ += bytes.packed;
    plan.Entries()[plan.count_++] = entry;
    return Ok();
  }));
  return plan;
}

Result<PackedWeights> PackedWeights::Create(const Environment& environment) {
  TARN_ASSIGN_OR_RETURN(PackedWeights weights, Plan(environment));
  TARN_RETURN_IF_ERROR(weights.Pack(environment));
  return weights;
}

Status PackedWeights::Pack(const Environment& environment, Span<uint8_t> memory) {
  uint64_t packed_bytes = 0;  // entries are met in the order of their places, for the first time
  const Status status = Instance::VisitDense(environment, [&](const DenseSpec& spec, const DenseBytes& bytes) {
    if (bytes.packed == 0 || FindEntry(spec)->packed_offset != packed_bytes) return Ok();
    const Span<uint8_t> place = memory.subspan(static_cast<size_t>(packed_bytes), static_cast<size_t>(bytes.packed));
    TARN_RETURN_IF_ERROR(DenseFor(*environment.dense, spec).pack(spec, place));
    packed_bytes += bytes.packed;
    environment.model->Forget({static_cast<const uint8_t*>(spec.weight), static_cast<size_t>(DenseWeightBytes(spec))});
    return Ok();
  });
  if (status.ok()) Use(memory.data());
  return status;
}

Status PackedWeights::Pack(const Environment& environment) {
  TARN_ASSIGN_OR_RETURN(own_memory_, Block::Allocate(environment.allocator, packed_bytes_, "packed weights"));
  return Pack(environment, own_memory_.bytes());
}

const uint8_t* PackedWeights::Find(const DenseSpec& spec) const {
  const Entry* entry = FindEntry(spec);
  return entry == nullptr || entry->packed_bytes == 0 ? nullptr : packed_ + entry->packed_offset;
}

}  // namespace tarn
