// ABC-MLP: slot memory whose control is a learned projection of the layer input.
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "tools/convert/attention.h"

namespace tarn::convert {
namespace {

constexpr Choice<format::SlotActivation> kActivations[] = {
    {"exp", format::SlotActivation::Exp}, {"relu", format::SlotActivation::Relu}, {"sigmoid", format::SlotActivation::Sigmoid}};
constexpr Choice<format::SlotNormalization> kNormalizations[] = {{"renorm", format::SlotNormalization::Renorm},
                                                                 {"frozen", format::SlotNormalization::Frozen}};
constexpr Choice<bool> kSharings[] = {{"layer", false}, {"model", true}};

struct Clamp {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

// null, or [lo, hi]
Clamp ParseClamp(Fields* fields) {
  const Json* value = fields->Find("logit_clamp");
  if (value == nullptr || value->is_null()) return {};
  const bool pair = value->is_array() && value->size() == 2 && (*value)[0].is_number() && (*value)[1].is_number();
  if (!pair) fields->FailAt("logit_clamp", ValueText(*value) + " is not null or [lo, hi]");
  const Clamp clamp{(*value)[0].get<float>(), (*value)[1].get<float>()};
  if (!std::isfinite(clamp.min) || !std::isfinite(clamp.max) || clamp.min > clamp.max) {
    fields->FailAt("logit_clamp", ValueText(*value) + " is no range");
  }
  return clamp;
}

}  // namespace

AttentionOp ParseAbcMlp(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  const uint32_t num_slots = fields->Size("num_slots", std::nullopt, kMaxHeadSize);
  const uint64_t rows = uint64_t{heads.kv_heads()} * num_slots;
  if (rows > Fields::kMaxSize) fields->FailAt("num_slots", std::to_string(rows) + " slots in all heads are too many");
  const auto activation = fields->OneOf<format::SlotActivation>("activation", kActivations, format::SlotActivation::Exp);
  const auto normalization =
      fields->OneOf<format::SlotNormalization>("normalization", kNormalizations, format::SlotNormalization::Renorm);
  const Clamp clamp = ParseClamp(fields);
  const bool mask_empty = fields->Bool("mask_empty", false);
  const bool shared = fields->OneOf<bool>("control_sharing", kSharings, false);
  const float scale = fields->Number("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim()))));

  AttentionOp op;
  op.type = format::OpAttributes::SlotMemory;
  op.attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
    return format::CreateSlotMemory(builder, &heads, num_slots, activation, normalization, clamp.min, clamp.max, mask_empty, scale)
        .Union();
  };
  op.logits.push_back({"control_logit", "control_proj", static_cast<uint32_t>(rows), /*bias=*/false, /*with_qkv=*/false, shared,
                       Init::kControl, Init::kZero});
  op.states.push_back({"K", {heads.kv_heads(), heads.head_dim(), num_slots}});
  op.states.push_back({"V", {heads.kv_heads(), num_slots, heads.value_dim()}});
  op.states.push_back({"mass", {heads.kv_heads(), num_slots}});
  return op;
}

}  // namespace tarn::convert
