#include "runtime/ops/attention/slot/slot_attributes.h"

#include <cmath>

#include "runtime/ops/attention/attention.h"

namespace tarn {
namespace {

// The schema's numbers are the kernels'.
static_assert(static_cast<int>(format::SlotActivation::Exp) == static_cast<int>(SlotActivation::kExp));
static_assert(static_cast<int>(format::SlotActivation::Relu) == static_cast<int>(SlotActivation::kRelu));
static_assert(static_cast<int>(format::SlotActivation::Sigmoid) == static_cast<int>(SlotActivation::kSigmoid));
static_assert(static_cast<int>(format::SlotNormalization::Renorm) == static_cast<int>(SlotNormalization::kRenorm));
static_assert(static_cast<int>(format::SlotNormalization::Frozen) == static_cast<int>(SlotNormalization::kFrozen));
static_assert(static_cast<int>(format::SlotControl::AbcMlp) == static_cast<int>(SlotControl::kAbcMlp));
static_assert(static_cast<int>(format::SlotControl::Linformer) == static_cast<int>(SlotControl::kLinformer));
static_assert(static_cast<int>(format::SlotControl::Assigned) == static_cast<int>(SlotControl::kAssigned));
static_assert(static_cast<int>(format::SlotControl::Global) == static_cast<int>(SlotControl::kGlobal));
static_assert(static_cast<int>(format::SlotControl::CompressiveMean) == static_cast<int>(SlotControl::kCompressiveMean));
static_assert(static_cast<int>(format::SlotControl::ClusteringOnline) == static_cast<int>(SlotControl::kClusteringOnline));
static_assert(static_cast<int>(format::SlotControl::Gsa) == static_cast<int>(SlotControl::kGsa));
static_assert(static_cast<int>(format::SlotControl::LunaCausal) == static_cast<int>(SlotControl::kLunaCausal));
static_assert(static_cast<size_t>(format::SlotControl::Clustering) == kSlotControlCount);

Status CheckNumbers(const format::SlotMemory& table) {
  if (table.activation() > format::SlotActivation::MAX || table.normalization() > format::SlotNormalization::MAX ||
      table.control() > format::SlotControl::MAX) {
    return Error(TARN_BAD_FORMAT, "unknown activation %u, normalization %u or control %u",
                 static_cast<unsigned>(table.activation()), static_cast<unsigned>(table.normalization()),
                 static_cast<unsigned>(table.control()));
  }
  if (table.num_slots() < 1 || table.num_slots() > kMaxSlots) {
    return Error(TARN_BAD_FORMAT, "num_slots is %u, 1 to %u wanted", table.num_slots(), kMaxSlots);
  }
  const bool clamps = table.logit_min() <= table.logit_max() && table.logit_min() < HUGE_VALF && table.logit_max() > -HUGE_VALF;
  if (!clamps || !std::isfinite(table.scale()) || !(table.gate_normalizer() > 0)) {
    return Error(TARN_BAD_FORMAT, "logit clamp [%g, %g], scale %g or gate_normalizer %g (> 0 wanted)",
                 static_cast<double>(table.logit_min()), static_cast<double>(table.logit_max()), static_cast<double>(table.scale()),
                 static_cast<double>(table.gate_normalizer()));
  }
  const bool clusters = table.control() == format::SlotControl::Clustering;
  if (clusters && (table.iterations() < 1 || table.iterations() > kMaxClusterIterations)) {
    return Error(TARN_BAD_FORMAT, "iterations is %u, 1 to %u wanted", table.iterations(), kMaxClusterIterations);
  }
  if (table.mass_bias() && !clusters) return Error(TARN_BAD_FORMAT, "mass_bias is for Clustering");
  return Ok();
}

Result<const uint32_t*> ReadPositions(const format::SlotMemory& table) {
  const auto* positions = table.positions();
  const uint32_t count = positions == nullptr ? 0 : positions->size();
  if (count != table.num_slots()) return Error(TARN_BAD_FORMAT, "positions: %u found, num_slots is %u", count, table.num_slots());
  for (uint32_t i = 1; i < count; ++i) {
    if (positions->Get(i) <= positions->Get(i - 1)) return Error(TARN_BAD_FORMAT, "positions are not ascending at %u", i);
  }
  return positions->data();
}

}  // namespace

Result<SlotAttributes> SlotAttributes::Read(const format::SlotMemory& table) {
  TARN_RETURN_IF_ERROR(CheckNumbers(table));
  SlotAttributes a{};
  a.control = table.control();
  a.slots = table.num_slots();
  a.activation = static_cast<SlotActivation>(table.activation());
  a.normalization = static_cast<SlotNormalization>(table.normalization());
  a.logit_min = table.logit_min();
  a.logit_max = table.logit_max();
  a.gate_normalizer = table.gate_normalizer();
  a.mask_empty = table.mask_empty();
  a.scale = table.scale();
  a.iterations = table.iterations();
  a.mass_bias = table.mass_bias();
  const bool is_bounded = a.control == format::SlotControl::Linformer || a.control == format::SlotControl::CompressiveMean;
  a.max_len = is_bounded ? table.max_len() : 0;
  if (is_bounded && (a.max_len < 1 || a.max_len > kMaxDimension)) {
    return Error(TARN_BAD_FORMAT, "max_len is %llu, 1 to %u wanted", static_cast<unsigned long long>(a.max_len), kMaxDimension);
  }
  if (a.control == format::SlotControl::Global) {
    TARN_ASSIGN_OR_RETURN(a.positions, ReadPositions(table));
  }
  return a;
}

Status SlotAttributes::ExpectControlInput(const PrepareContext& context, uint32_t index, uint64_t kv_heads) const {
  if (has_logits()) return context.ExpectInput(index, "control", kv_heads * slots);
  if (has_index()) return context.ExpectInput(index, "slots", kv_heads, format::DType::I32);
  return Ok();
}

void SlotAttributes::ReadIndex(const int32_t* from, size_t stride, size_t tokens, int32_t* index) const {
  for (size_t t = 0; t < tokens; ++t) {
    const uint32_t slot = static_cast<uint32_t>(from[t * stride]);
    index[t] = static_cast<int32_t>(slot < slots ? slot : slots - 1);
  }
}

void DescribeSlots(const format::SlotMemory& a, char* text, size_t text_bytes) {
  char control[96] = "";
  if (a.control() == format::SlotControl::AbcMlp) {
    Format(control, sizeof(control), ", %s %s, clamp [%g, %g]", format::EnumNameSlotActivation(a.activation()),
           format::EnumNameSlotNormalization(a.normalization()), static_cast<double>(a.logit_min()),
           static_cast<double>(a.logit_max()));
  }
  Format(text, text_bytes, "%s: %u slots%s, heads %u/%u x %u/%u", a.system() == nullptr ? "unnamed" : a.system()->c_str(),
         a.num_slots(), control, a.heads()->heads(), a.heads()->kv_heads(), a.heads()->head_dim(), a.heads()->value_dim());
}

}  // namespace tarn
