// ABC-RD: slot memory whose tokens go into slots at random.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseAbcRd(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kAssigned, DefaultScale(context.heads));
  AttentionOp op = MakeSlotMemory(slots, context, "abc_rd");
  AddRandomIndex(fields, slots, context, &op);
  return op;
}

}  // namespace tarn::convert
