// Linformer: slot memory whose controls are one learned column per token of the sequence, for keys and values and
// all heads alike.
#include "tools/convert/attention/slot_memory.h"

namespace tarn::convert {

AttentionOp ParseLinformer(Fields* fields, const AttentionContext& context) {
  SlotMemory slots{format::SlotControl::Linformer, ParseNumSlots(fields, context.heads)};
  slots.max_len = ParseMaxLen(fields, slots.num_slots);
  fields->Fix("mask_empty", false);  // every token writes into every slot
  slots.scale = fields->Number("scale", DefaultScale(context.heads));

  AttentionOp op = MakeSlotMemory(slots, context, "linformer");
  const size_t n = slots.num_slots, length = slots.max_len;
  const auto transpose = [n, length](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(n * length);
    for (size_t slot = 0; slot < n; ++slot) {
      for (size_t token = 0; token < length; ++token) out[token * n + slot] = parts[0][slot * length + token];
    }
    return out;
  };
  op.tensors.push_back({"schedule",
                        {slots.max_len, slots.num_slots},
                        {{"linformer_weight", {slots.num_slots, slots.max_len}, Init::kLinear}},
                        transpose});
  return op;
}

}  // namespace tarn::convert
