#include "tools/convert/attention/slot_memory.h"

#include <optional>

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

StateKind KindOf(const SlotMemory& slots) {
  switch (slots.control) {
    case format::SlotControl::AbcMlp:
      return slots.normalization == format::SlotNormalization::Frozen ? StateKind::kSum : StateKind::kMean;
    case format::SlotControl::Linformer:
    case format::SlotControl::Assigned:
      return StateKind::kSum;
    case format::SlotControl::Global:
      return StateKind::kOnce;
    case format::SlotControl::Gsa:
      return StateKind::kDecaying;
    case format::SlotControl::CompressiveMean:
    case format::SlotControl::ClusteringOnline:
    case format::SlotControl::LunaCausal:
    case format::SlotControl::Clustering:  // of NoncausalSlots, whose states do not move
      break;
  }
  return StateKind::kMean;
}

// Log-sum-exp, sum or number of what a slot has taken.
bool HasMass(const SlotMemory& slots) {
  switch (slots.control) {
    case format::SlotControl::AbcMlp:
    case format::SlotControl::CompressiveMean:
    case format::SlotControl::ClusteringOnline:
      return true;
    case format::SlotControl::Assigned:
      return slots.mask_empty;
    default:
      return false;
  }
}

Offset<format::SlotMemory> Attributes(FlatBufferBuilder* builder, const SlotMemory& slots, const format::Heads& heads,
                                      const std::string& system) {
  const auto name = builder->CreateString(system);
  const auto positions = slots.positions.empty() ? 0 : builder->CreateVector(slots.positions);
  return format::CreateSlotMemory(*builder, &heads, slots.num_slots, slots.activation, slots.normalization, slots.logit_min,
                                  slots.logit_max, slots.mask_empty, slots.scale, slots.control, slots.gate_normalizer,
                                  slots.max_len, positions, name, slots.iterations, slots.mass_bias);
}

AttentionOp MakeCausal(const SlotMemory& slots, const format::Heads& heads, const std::string& system) {
  AttentionOp op;
  op.type = format::OpAttributes::SlotMemory;
  op.attributes = [=](FlatBufferBuilder& builder) { return Attributes(&builder, slots, heads, system).Union(); };
  op.states.push_back({"K", {heads.kv_heads(), heads.head_dim(), slots.num_slots}});
  op.states.push_back({"V", {heads.kv_heads(), slots.num_slots, heads.value_dim()}});
  if (HasMass(slots)) op.states.push_back({"mass", {heads.kv_heads(), slots.num_slots}});
  op.num_sized_states = 2;
  op.state_kind = KindOf(slots);
  return op;
}

// Whole sequences leave no state, sources the slots and what is added to their logits.
AttentionOp MakeNoncausal(const SlotMemory& slots, const AttentionContext& context, const std::string& system) {
  AttentionOp op;
  const format::Heads heads = context.heads;
  const auto part = [=](format::NoncausalPart which) -> AttributeWriter {
    return [=](FlatBufferBuilder& builder) {
      const auto memory = Attributes(&builder, slots, heads, system);
      return format::CreateNoncausalSlots(builder, which, memory).Union();
    };
  };
  SetNoncausalOp(context.form, format::OpAttributes::NoncausalSlots, part, &op);
  if (context.form == AttentionForm::kNoncausal) return op;
  const uint32_t kv_heads = heads.kv_heads();
  op.states.push_back(SourceState("K", {kv_heads, heads.head_dim(), slots.num_slots}));
  op.states.push_back(SourceState("V", {kv_heads, slots.num_slots, heads.value_dim()}));
  const bool masks = slots.mask_empty || slots.control == format::SlotControl::Clustering;
  if (masks) op.states.push_back(SourceState("bias", {kv_heads, slots.num_slots}));
  op.num_sized_states = 2;
  op.scales = {{1, SourceState("scales", {kv_heads, heads.head_dim() + slots.num_slots})}};
  return op;
}

}  // namespace

AttentionOp MakeSlotMemory(const SlotMemory& slots, const AttentionContext& context, const std::string& system) {
  return context.form == AttentionForm::kCausal ? MakeCausal(slots, context.heads, system) : MakeNoncausal(slots, context, system);
}

LogitInput SlotLogits(const SlotMemory& slots, const format::Heads& heads, const char* name, const char* projection, Init init) {
  return {name, projection, heads.kv_heads() * slots.num_slots, /*bias=*/false, /*with_qkv=*/false, /*shared=*/false,
          init, Init::kZero};
}

uint32_t ParseNumSlots(Fields* fields, const format::Heads& heads) {
  const uint32_t num_slots = fields->Size("num_slots", std::nullopt, kMaxSlots);
  const uint64_t all = uint64_t{heads.kv_heads()} * num_slots;
  if (all > Fields::kMaxSize) fields->FailAt("num_slots", std::to_string(all) + " slots in all heads are too many");
  return num_slots;
}

uint32_t ParseMaxLen(Fields* fields, uint32_t num_slots) {
  const uint32_t max_len = fields->Size("max_len");
  if (num_slots > max_len) {
    fields->FailAt("num_slots",
                   std::to_string(num_slots) + " slots are more than max_len = " + std::to_string(max_len) + " tokens");
  }
  return max_len;
}

}  // namespace tarn::convert
