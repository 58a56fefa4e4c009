// Gated slot attention: slot memory with a gate per slot, which forgets as much as it writes.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseGsa(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::Gsa, ParseNumSlots(fields, context.heads)};
  slots.gate_normalizer = fields->PositiveNumber("gate_normalizer", 8.0f);
  fields->Fix("mask_empty", false);  // every token writes into every slot
  slots.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeSlotMemory(slots, context, "gsa");
  op.logits.push_back(SlotLogits(slots, context.heads, "gate_logit", "g_proj", Init::kLinear));
  return op;
}

}  // namespace tarn::convert
