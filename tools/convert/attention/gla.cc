// Gated linear attention: linear state of the keys themselves, whose rows decay by a gate each.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseGla(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "vector");
  FixUndivided(fields);
  LinearAttributes state;
  state.gate = Gate::kVector;
  ParseVectorGate(fields, &state);
  state.scale = fields->Number("scale", DefaultScale(context.heads));
  AttentionOp op = MakeLinearState(state, context, "gla");
  ParseGateProjection(fields, &op);
  return op;
}

}  // namespace tarn::convert
