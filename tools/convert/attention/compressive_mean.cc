// Compressive attention with mean pooling, in bounded-memory form: the sequence of max_len tokens is cut into num_slots stretches,
// and a slot holds the mean of its stretch.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseCompressiveMean(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::CompressiveMean, ParseNumSlots(fields, context.heads)};
  slots.max_len = ParseMaxLen(fields, slots.num_slots);
  slots.mask_empty = fields->Bool("mask_empty", true);
  slots.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "compressive_mean");
}

}  // namespace tarn::convert
