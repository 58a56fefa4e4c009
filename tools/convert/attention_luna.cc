// Causal Luna: slot memory that holds means over all tokens, weighed by log2(1 + 2^logit). The packed sequence P is a constant of
// the model, so that its product with the tokens is one projection of the layer input.
#include "tools/convert/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseLunaCausal(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::LunaCausal, ParseNumSlots(fields, context.heads)};
  fields->Fix("activation", "softplus2");
  fields->Fix("mask_empty", false);  // every token writes into every slot
  slots.scale = fields->Number("scale", DefaultScale(context.heads));

  AttentionOp op = MakeSlotMemory(slots, context, "luna_causal");
  op.logits.push_back(SlotLogits(slots, context.heads, "control_logit", "control_proj", Init::kControl));
  return op;
}

}  // namespace tarn::convert
