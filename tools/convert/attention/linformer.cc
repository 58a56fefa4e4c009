// Linformer: slot memory whose controls are one learned column per token of the sequence.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseLinformer(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kLinformer, DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "linformer");
}

}  // namespace tarn::convert
