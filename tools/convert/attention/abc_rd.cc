// ABC-RD: slot memory whose tokens go into slots at random, drawn by a RandomSlots op from a seed, the layer, the head and the
// token's number.
#include <limits>

#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseAbcRd(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::Assigned, ParseNumSlots(fields, context.heads)};
  const uint64_t seed = fields->Integer("seed", 0, std::numeric_limits<uint64_t>::max(), 0);
  slots.mask_empty = fields->Bool("mask_empty", false);
  slots.scale = fields->Number("scale", DefaultScale(context.heads));

  AttentionOp op = MakeSlotMemory(slots, context, "abc_rd");
  const auto draw = [=, num_slots = slots.num_slots, layer = context.layer](flatbuffers::FlatBufferBuilder& builder) {
    return format::CreateRandomSlots(builder, num_slots, seed, layer).Union();
  };
  op.drawn = {"slot_index", format::OpAttributes::RandomSlots, draw, context.heads.kv_heads()};
  return op;
}

}  // namespace tarn::convert
