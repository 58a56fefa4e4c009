// Mamba 2: linear state with a decay of the head and the token, whose step is also what is written. q is called C there, k B, v x;
// its skip D is output_skip of config.json.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseMamba2(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "step");
  FixUndivided(fields);
  LinearAttributes state;
  state.gate = Gate::kStep;
  ParseSteps(fields, &state);
  state.scale = fields->Number("scale", 1.0f);
  AttentionOp op = MakeLinearState(state, context, "mamba2");
  ParseGateProjection(fields, &op);
  op.tensors.push_back(DecayRates(context.heads));
  return op;
}

}  // namespace tarn::convert
