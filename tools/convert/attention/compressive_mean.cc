// Compressive attention with mean pooling, in bounded-memory form: the sequence of max_len tokens is cut into num_slots stretches,
// and a slot holds the mean of its stretch.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseCompressiveMean(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kCompressiveMean, DefaultScale(context.heads));
  return MakeSlotMemory(slots, context, "compressive_mean");
}

}  // namespace tarn::convert
