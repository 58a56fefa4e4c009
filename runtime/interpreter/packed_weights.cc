#include "runtime/interpreter/packed_weights.h"

#include <cstring>

#include "runtime/platform/huge_pages.h"

namespace tarn {
namespace {

static_assert(sizeof(PackedWeights::Entry) == 56, "entries are compared and written as bytes");

// Everything before the place.
bool IsSameLayer(const PackedWeights::Entry& a, const PackedWeights::Entry& b) {
  return std::memcmp(&a, &b, offsetof(PackedWeights::Entry, packed_offset)) == 0;
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
          spec.in_place,
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

DenseSpec PackedWeights::SpecOf(const Entry& entry, const Kernels* kernels) const {
  DenseSpec spec{};
  spec.inputs = spec.x_stride = entry.inputs;
  spec.outputs = spec.y_stride = entry.outputs;
  spec.type = static_cast<DenseWeights>(entry.type);
  spec.weight = weight_section_ + entry.weight;
  if (entry.scales != UINT64_MAX) {
    const uint8_t* scales = weight_section_ + entry.scales;
    if (IsBlockwise(spec.type)) spec.block_scales = reinterpret_cast<const uint16_t*>(scales);
    if (spec.type == DenseWeights::kQC8W) spec.scales = reinterpret_cast<const float*>(scales);
  }
  if (entry.bias != UINT64_MAX) spec.bias = reinterpret_cast<const float*>(weight_section_ + entry.bias);
  spec.max_rows = 1;
  spec.kernels = kernels;
  return spec;
}

Result<size_t> PackedWeights::Count(const Instance::Draft& draft) {
  size_t layers = 0;
  TARN_RETURN_IF_ERROR(draft.VisitDense([&](const DenseSpec&, uint64_t) {
    ++layers;
    return Ok();
  }));
  return layers;
}

Result<PackedWeights> PackedWeights::Reserve(const Environment& environment, size_t layers) {
  PackedWeights weights;
  weights.weight_section_ = environment.model->weights().data();
  TARN_ASSIGN_OR_RETURN(weights.table_, Block::Allocate(environment.allocator, layers * sizeof(Entry), "table of packed weights"));
  return weights;
}

Status PackedWeights::Plan(const Instance::Draft& draft) {
  return draft.VisitDense([&](const DenseSpec& spec, uint64_t packed_bytes) {
    if (FindEntry(spec) != nullptr) return Ok();
    Entry entry = Describe(spec);
    if (packed_bytes == 0 && !IsReadInPlace(entry.weight)) {
      in_place_bytes_ += DenseWeightBytes(spec) + DenseScaleBytes(spec);
    }
    entry.packed_offset = packed_bytes_;
    entry.packed_bytes = packed_bytes;
    packed_bytes_ += packed_bytes;
    Entries()[count_++] = entry;
    return Ok();
  });
}

Result<PackedWeights> PackedWeights::Create(const Environment& environment) {
  TARN_ASSIGN_OR_RETURN(const Instance::Draft draft, Instance::Draft::Make(environment));
  TARN_ASSIGN_OR_RETURN(const size_t layers, Count(draft));
  TARN_ASSIGN_OR_RETURN(PackedWeights weights, Reserve(environment, layers));
  TARN_RETURN_IF_ERROR(weights.Plan(draft));
  TARN_RETURN_IF_ERROR(weights.Pack(environment, nullptr));
  return weights;
}

Status PackedWeights::Pack(const Environment& environment, Span<uint8_t> memory, WeightCheck* check) {
  for (const Entry& entry : entries()) {
    if (entry.packed_bytes == 0) continue;
    const DenseSpec spec = SpecOf(entry, environment.kernels);
    const Span<const uint8_t> original(static_cast<const uint8_t*>(spec.weight), static_cast<size_t>(DenseWeightBytes(spec)));
    if (check != nullptr) check->ReadThrough(original);
    const Span<uint8_t> place = memory.subspan(static_cast<size_t>(entry.packed_offset), static_cast<size_t>(entry.packed_bytes));
    TARN_RETURN_IF_ERROR(BackendOf(*environment.dense, spec).pack(spec, place));
    environment.model->Forget(original);
  }
  Use(memory.data());
  return Ok();
}

Status PackedWeights::Pack(const Environment& environment, WeightCheck* check) {
  TARN_ASSIGN_OR_RETURN(own_memory_, Block::Allocate(environment.allocator, packed_bytes_, "packed weights"));
  AdviseHugePages(own_memory_.bytes());
  return Pack(environment, own_memory_.bytes(), check);
}

bool PackedWeights::IsOnlyPacked(const Model& model, uint32_t tensor) const {
  const uint64_t offset = static_cast<uint64_t>(model.tensor(tensor).data - weight_section_);
  bool packed = false;
  for (const Entry& entry : entries()) {
    if (entry.weight != offset) continue;
    if (entry.packed_bytes == 0) return false;
    packed = true;
  }
  return packed && model.IsOnlyDenseWeight(tensor);
}

const uint8_t* PackedWeights::Find(const DenseSpec& spec) const {
  const Entry* entry = FindEntry(spec);
  return entry == nullptr || entry->packed_bytes == 0 ? nullptr : packed_ + entry->packed_offset;
}

}  // namespace tarn
