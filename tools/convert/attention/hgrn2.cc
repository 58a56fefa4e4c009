// HGRN2: linear state whose gate is all there is to a key: what a channel forgets, 1 - g, is what it writes.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseHgrn2(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "tied");
  FixUndivided(fields);
  LinearAttributes state;
  state.gate = Gate::kTied;
  state.gate_bounds = fields->Bool("lower_bounds", true);
  state.scale = fields->Number("scale", DefaultScale(context.heads));
  AttentionOp op = MakeLinearState(state, context, "hgrn2");
  const format::Heads& heads = context.heads;
  if (state.gate_bounds) op.tensors.push_back(LowerBounds("bound", {heads.kv_heads(), heads.head_dim()}, context));
  return op;
}

}  // namespace tarn::convert
