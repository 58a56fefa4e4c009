// ABC-MLP: slot memory whose control is a learned projection of the layer input.
#include <cmath>

#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {
namespace {

constexpr Choice<format::SlotActivation> kActivations[] = {
    {"exp", format::SlotActivation::Exp}, {"relu", format::SlotActivation::Relu}, {"sigmoid", format::SlotActivation::Sigmoid}};
constexpr Choice<format::SlotNormalization> kNormalizations[] = {{"renorm", format::SlotNormalization::Renorm},
                                                                 {"frozen", format::SlotNormalization::Frozen}};
constexpr Choice<bool> kSharings[] = {{"layer", false}, {"model", true}};

// null, or [lo, hi]
void ParseClamp(Fields* fields, SlotMemory* slots) {
  const Json* value = fields->Find("logit_clamp");
  if (value == nullptr || value->is_null()) return;
  const bool pair = value->is_array() && value->size() == 2 && (*value)[0].is_number() && (*value)[1].is_number();
  if (!pair) fields->FailAt("logit_clamp", ValueText(*value) + " is not null or [lo, hi]");
  slots->logit_min = (*value)[0].get<float>();
  slots->logit_max = (*value)[1].get<float>();
  if (!std::isfinite(slots->logit_min) || !std::isfinite(slots->logit_max) || slots->logit_min > slots->logit_max) {
    fields->FailAt("logit_clamp", ValueText(*value) + " is no range");
  }
}

}  // namespace

AttentionOp ParseAbcMlp(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  SlotMemory slots{format::SlotControl::AbcMlp, ParseNumSlots(fields, heads)};
  slots.activation = fields->OneOf<format::SlotActivation>("activation", kActivations, format::SlotActivation::Exp);
  slots.normalization =
      fields->OneOf<format::SlotNormalization>("normalization", kNormalizations, format::SlotNormalization::Renorm);
  if (slots.normalization == format::SlotNormalization::Frozen && context.form != AttentionForm::kCausal) {
    fields->FailAt("normalization", "\"frozen\" has only a causal form: its weights are those of the moment of writing");
  }
  ParseClamp(fields, &slots);
  slots.mask_empty = fields->Bool("mask_empty", false);
  const bool shared = fields->OneOf<bool>("control_sharing", kSharings, false);
  slots.scale = fields->Number("scale", DefaultScale(heads));

  AttentionOp op = MakeSlotMemory(slots, context, "abc_mlp");
  op.logits.push_back(SlotLogits(slots, heads, "control_logit", "control_proj", Init::kControl));
  op.logits.back().shared = shared;
  return op;
}

}  // namespace tarn::convert
