// ABC-MLP: slot memory whose control is a learned projection of the layer input.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseAbcMlp(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kAbcMlp, DefaultScale(context.heads));
  AttentionOp op = MakeSlotMemory(slots, context, "abc_mlp");
  ShareControls(fields, &op);
  return op;
}

}  // namespace tarn::convert
