// Online clustering: slot memory in which the first tokens open a slot each, and later ones join the slot of the nearest mean key.
#include "tools/convert/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseClusteringOnline(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::ClusteringOnline, ParseNumSlots(fields, context.heads)};
  fields->Fix("init", "first_n");
  slots.mask_empty = fields->Bool("mask_empty", true);
  slots.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeSlotMemory(slots, context.heads, "clustering_online");
}

}  // namespace tarn::convert
