// Luna. Causal: slot memory that holds means over all tokens, weighed by log2(1 + 2^logit). The packed sequence P is a constant of
// the model, so that its product with the tokens is one projection of the layer input. In encoders: a pack of rows that attends to
// the tokens, and is read by them; it goes from layer to layer.
#include <string>

#include "tools/convert/attention/slot_memory.h"
#include "tools/convert/build/luna.h"

namespace tarn::convert {

AttentionOp ParseLunaCausal(Fields* fields, const AttentionContext& context) {
  const SlotMemory slots = ParseSlotMemory(fields, context, SlotControl::kLunaCausal, DefaultScale(context.heads));
  fields->Fix("activation", "softplus2");
  AttentionOp op = MakeSlotMemory(slots, context, "luna_causal");
  op.logits.back().bias = fields->Bool("control_bias", false);
  return op;
}

AttentionOp ParseLunaEncoder(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  const uint32_t width = heads.heads() * heads.head_dim();
  if (heads.kv_heads() != heads.heads() || heads.value_dim() != heads.head_dim() || width != context.hidden_size) {
    fields->FailAt("system", "\"luna_encoder\" has heads of keys and values like those of queries, which divide hidden_size = " +
                                 std::to_string(context.hidden_size));
  }
  if (context.rope)
    fields->FailAt("system", "\"luna_encoder\" with position_embedding = \"rope\": rows of a pack have no position");
  LunaBlock block{};
  block.num_heads = heads.heads();
  block.num_pack_heads = fields->Size("num_pack_heads", heads.heads(), kMaxHeads);
  if (width % block.num_pack_heads != 0) {
    fields->FailAt("num_pack_heads",
                   std::to_string(block.num_pack_heads) + " does not divide hidden_size = " + std::to_string(width));
  }
  block.tie_kv = fields->Bool("tie_kv", true);
  block.scale = fields->Number("scale", DefaultScale(heads));
  const uint32_t pack_dim = width / block.num_pack_heads;
  block.pack_scale = fields->Number("pack_scale", DefaultScale(format::Heads(1, 1, pack_dim, pack_dim)));
  const uint32_t num_slots = ParseNumSlots(fields, heads);
  block.max_rows = fields->Size("max_context");
  if (num_slots > block.max_rows) {
    fields->FailAt("num_slots", std::to_string(num_slots) + " is above max_context = " + std::to_string(block.max_rows));
  }

  constexpr Choice<bool> kNormPositions[] = {{"post", false}, {"pre", true}};
  const bool norm_first = fields->OneOf<bool>("pack_norm_position", kNormPositions, false);

  AttentionOp op;
  op.composed.emplace();
  op.composed->pack_norm_first = norm_first;
  op.composed->pack_rows = num_slots;
  op.composed->pack = [block](GraphBuilder* builder, const std::string& prefix, format::Slice x, format::Slice pack) {
    ComposedAttention::Packed packed;
    packed.x = AddLunaAttention(builder, prefix, block, x, pack, x, &packed.pack);
    return packed;
  };
  return op;
}

}  // namespace tarn::convert
