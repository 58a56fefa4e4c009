#include "tools/convert/attention/slot_memory.h"

#include <cmath>
#include <limits>
#include <optional>

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

StateKind KindOf(const SlotMemory& slots) {
  switch (slots.info().content) {
    case SlotContent::kSum:
      return StateKind::kSum;
    case SlotContent::kMean:
      return slots.normalization == SlotNormalization::kFrozen ? StateKind::kSum : StateKind::kMean;
    case SlotContent::kDecaying:
      return StateKind::kDecaying;
    case SlotContent::kOnce:
      break;
  }
  return StateKind::kOnce;
}

// A table packs its fields by size: wide ones come first.
Offset<format::SlotMemory> Write(FlatBufferBuilder* builder, const SlotMemory& slots, const format::Heads& heads,
                                 const std::string& system) {
  const auto name = builder->CreateString(system);
  const auto positions = slots.positions.empty() ? 0 : builder->CreateVector(slots.positions);
  format::SlotMemoryBuilder table(*builder);
#define TARN_IGNORE(...)
#define TARN_WRITE_SIZE(type, name, ...) table.add_##name(slots.name);
#define TARN_WRITE(name, ...) table.add_##name(slots.name);
#define TARN_WRITE_FLAG(name) table.add_##name(slots.name);
#define TARN_WRITE_CHOICE(type, name, ...) table.add_##name(static_cast<uint8_t>(slots.name));
  TARN_SLOT_ATTRIBUTES(TARN_IGNORE, TARN_WRITE_SIZE, TARN_IGNORE, TARN_IGNORE)
  table.add_system(name);
  table.add_positions(positions);
  TARN_SLOT_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_WRITE, TARN_IGNORE)
  table.add_num_slots(slots.num_slots);
  table.add_heads(&heads);
  TARN_SLOT_ATTRIBUTES(TARN_WRITE_CHOICE, TARN_IGNORE, TARN_IGNORE, TARN_WRITE_FLAG)
#undef TARN_IGNORE
#undef TARN_WRITE_SIZE
#undef TARN_WRITE
#undef TARN_WRITE_FLAG
#undef TARN_WRITE_CHOICE
  return table.Finish();
}

AttentionOp MakeCausal(const SlotMemory& slots, const format::Heads& heads, const std::string& system) {
  AttentionOp op;
  op.type = format::OpAttributes::SlotMemory;
  op.attributes = [=](FlatBufferBuilder& builder) { return Write(&builder, slots, heads, system).Union(); };
  StateInfo states[kMaxSlotStates];
  StatesOf(slots, heads.kv_heads(), heads.head_dim(), heads.value_dim(), states);
  for (uint32_t i = 0; i < StateCount(slots); ++i) op.states.push_back(ToGraphState(states[i]));
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
      const auto memory = Write(&builder, slots, heads, system);
      return format::CreateNoncausalSlots(builder, which, memory).Union();
    };
  };
  SetNoncausalOp(context.form, format::OpAttributes::NoncausalSlots, part, &op);
  if (context.form == AttentionForm::kNoncausal) return op;
  const uint32_t kv_heads = heads.kv_heads();
  op.states.push_back(SourceState("K", {kv_heads, heads.head_dim(), slots.num_slots}));
  op.states.push_back(SourceState("V", {kv_heads, slots.num_slots, heads.value_dim()}));
  if (slots.has_noncausal_bias()) op.states.push_back(SourceState("bias", {kv_heads, slots.num_slots}));
  op.num_sized_states = 2;
  op.scales = {{1, SourceState("scales", {kv_heads, heads.head_dim() + slots.num_slots})}};
  return op;
}

// A learned column per token of the sequence, for all heads alike. `part`: "" or "value_", before its names.
AttentionTensor Schedule(const SlotMemory& slots, const std::string& part) {
  const auto n = slots.num_slots, length = static_cast<uint32_t>(slots.max_len);
  const auto transpose = [n, length](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(size_t{n} * length);
    for (size_t slot = 0; slot < n; ++slot) {
      for (size_t token = 0; token < length; ++token) out[token * n + slot] = parts[0][slot * length + token];
    }
    return out;
  };
  return {part + "schedule", {length, n}, {{"linformer_" + part + "weight", {n, length}, Init::kLinear}}, transpose};
}

// max_len. Errors: fewer tokens than slots.
uint32_t ParseMaxLen(Fields* fields, uint32_t num_slots) {
  const uint32_t max_len = fields->Size("max_len");
  if (num_slots > max_len) {
    fields->FailAt("num_slots",
                   std::to_string(num_slots) + " slots are more than max_len = " + std::to_string(max_len) + " tokens");
  }
  return max_len;
}

// null, or [lo, hi]
void ParseClamp(Fields* fields, SlotMemory* slots) {
  const Json* value = fields->Find("logit_clamp", "null or [lowest, highest]", "null");
  if (value == nullptr || value->is_null()) return;
  const bool pair = value->is_array() && value->size() == 2 && (*value)[0].is_number() && (*value)[1].is_number();
  if (!pair) fields->FailAt("logit_clamp", ValueText(*value) + " is not null or [lo, hi]");
  slots->logit_min = (*value)[0].get<float>();
  slots->logit_max = (*value)[1].get<float>();
  if (!std::isfinite(slots->logit_min) || !std::isfinite(slots->logit_max) || slots->logit_min > slots->logit_max) {
    fields->FailAt("logit_clamp", ValueText(*value) + " is no range");
  }
}

void ParseActivation(Fields* fields, const AttentionContext& context, SlotMemory* slots) {
  slots->activation = fields->OneOf<SlotActivation>("activation", kSlotActivationNames, SlotActivation::kExp);
  slots->normalization = fields->OneOf<SlotNormalization>("normalization", kSlotNormalizationNames, SlotNormalization::kRenorm);
  if (slots->normalization == SlotNormalization::kFrozen && context.form != AttentionForm::kCausal) {
    fields->FailAt("normalization", "\"frozen\" has only a causal form: its weights are those of the moment of writing");
  }
  constexpr Choice<bool> kInputs[] = {{"layer", false}, {"heads", true}};
  slots->control_of_heads = fields->OneOf<bool>("control_input", kInputs, false);
  ParseClamp(fields, slots);
}

bool ParseMaskEmpty(Fields* fields, EmptySlots empty) {
  switch (empty) {
    case EmptySlots::kSeen:
      return fields->Bool("mask_empty", false);
    case EmptySlots::kMasked:
      return fields->Bool("mask_empty", true);
    case EmptySlots::kNever:
    case EmptySlots::kAlwaysMasked:
      break;
  }
  const bool masked = empty == EmptySlots::kAlwaysMasked;
  fields->Fix("mask_empty", masked);
  return masked;
}

}  // namespace

SlotMemory ParseSlotMemory(Fields* fields, const AttentionContext& context, SlotControl control, float scale) {
  SlotMemory slots;
  slots.control = control;
  if (slots.reads(kReadsPositions)) {  // which count tokens from 0 at the reset
    slots.positions = fields->Ascending("global_positions", std::numeric_limits<uint32_t>::max(), kMaxSlots);
    slots.num_slots = static_cast<uint32_t>(slots.positions.size());
    fields->Fix("num_slots", slots.num_slots);
  } else {
    slots.num_slots = ParseNumSlots(fields, context.heads);
  }
  if (slots.reads(kReadsMaxLen)) slots.max_len = ParseMaxLen(fields, slots.num_slots);
  if (slots.reads(kReadsActivation)) ParseActivation(fields, context, &slots);
  if (slots.reads(kReadsValueControl)) slots.own_value_control = fields->Bool("own_value_control", false);
  if (slots.reads(kReadsGateNormalizer)) slots.gate_normalizer = fields->PositiveNumber("gate_normalizer", 8.0f);
  if (slots.reads(kReadsClusters)) {
    slots.iterations = fields->Size("iterations", 10, kMaxClusterIterations);
    slots.mass_bias = fields->Bool("mass_bias", false);
  }
  slots.mask_empty = ParseMaskEmpty(fields, slots.info().empty);
  slots.scale = fields->Number("scale", scale);
  return slots;
}

AttentionOp MakeSlotMemory(const SlotMemory& slots, const AttentionContext& context, const std::string& system) {
  const format::Heads& heads = context.heads;
  AttentionOp op =
      context.form == AttentionForm::kCausal ? MakeCausal(slots, heads, system) : MakeNoncausal(slots, context, system);
  const auto add_logits = [&](const char* name, const char* projection, LogitRows rows) {
    op.logits.push_back({name, projection, heads.kv_heads() * slots.num_slots, /*bias=*/false, /*with_qkv=*/false,
                         /*shared=*/false, Init::kControl, Init::kZero});
    if (!slots.control_of_heads) return;
    op.logits.back().rows = rows;
    op.logits.back().heads = heads.kv_heads();
  };
  if (slots.has_logits()) add_logits("control_logit", "control_proj", LogitRows::kKeys);
  if (slots.has_schedule()) op.tensors.push_back(Schedule(slots, ""));
  if (!slots.own_value_control) return op;
  op.features.push_back("value_control");
  if (slots.has_logits()) add_logits("value_control_logit", "value_control_proj", LogitRows::kValues);
  if (slots.has_schedule()) op.tensors.push_back(Schedule(slots, "value_"));
  return op;
}

void AddRandomIndex(Fields* fields, const SlotMemory& slots, const AttentionContext& context, AttentionOp* op) {
  const uint64_t seed = fields->Integer("seed", 0, std::numeric_limits<uint64_t>::max(), 0);
  const auto draw = [=, num_slots = slots.num_slots, layer = context.layer](FlatBufferBuilder& builder) {
    return format::CreateRandomSlots(builder, num_slots, seed, layer).Union();
  };
  op->drawn = {"slot_index", format::OpAttributes::RandomSlots, draw, context.heads.kv_heads()};
}

void ParseControlProjection(Fields* fields, AttentionOp* op) {
  constexpr Choice<bool> kSharings[] = {{"layer", false}, {"model", true}};
  const bool shared = fields->OneOf<bool>("control_sharing", kSharings, false);
  const bool of_layer = op->logits.back().rows == LogitRows::kLayer;
  const bool bias = of_layer && fields->Bool("control_bias", false);
  for (LogitInput& logit : op->logits) {
    logit.shared = shared;
    logit.bias = bias;
  }
}

uint32_t ParseNumSlots(Fields* fields, const format::Heads& heads) {
  const uint32_t num_slots = fields->Size("num_slots", std::nullopt, kMaxSlots);
  const uint64_t all = uint64_t{heads.kv_heads()} * num_slots;
  if (all > Fields::kMaxSize) fields->FailAt("num_slots", std::to_string(all) + " slots in all heads are too many");
  return num_slots;
}

}  // namespace tarn::convert
