// Slot memory with any control of variants/: what a paper without a name of its own here is converted as.
#include <string>

#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {
namespace {

void CheckForm(Fields* fields, const AttentionContext& context, const SlotControlInfo& control) {
  const bool causal = context.form == AttentionForm::kCausal;
  if (causal ? control.causal : control.noncausal != NoncausalForm::kNone) return;
  fields->FailAt("control", std::string(control.name) + (causal ? " has no causal form" : " has only a causal form"));
}

}  // namespace

AttentionOp ParseSlotAttention(Fields* fields, const AttentionContext& context) {
  const auto control = fields->OneOfList<SlotControl>("control", kSlotControls);
  CheckForm(fields, context, InfoOf(control));
  const SlotMemory slots = ParseSlotMemory(fields, context, control, DefaultScale(context.heads));
  AttentionOp op = MakeSlotMemory(slots, context, "slot_attention");
  if (slots.has_logits()) ShareControls(fields, &op);
  if (slots.has_index()) AddRandomIndex(fields, slots, context, &op);
  return op;
}

}  // namespace tarn::convert
