// Gated slot attention: slot memory with a gate per slot, which forgets as much as it writes.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseGsa(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kGsa, /*scale=*/1.0f);
  AttentionOp op = MakeSlotMemory(slots, context, "gsa");
  op.logits.back().name = "gate_logit";
  op.logits.back().projection = "g_proj";
  op.logits.back().weight_init = Init::kLinear;
  op.logits.back().bias = fields->Bool("gate_bias", false);
  return op;
}

}  // namespace tarn::convert
