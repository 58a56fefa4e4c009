// RWKV-7: linear state with a decay of each channel, from which a removal key of its own takes away before the key writes.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseRwkv7(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "sigmoid_vector");
  fields->Fix("rule", "replace");
  FixUndivided(fields);
  LinearAttributes state;
  state.gate = Gate::kSigmoidVector;
  state.gate_min = fields->Number("gate_clamp_min", kLeastLogDecay);
  state.rule = WriteRule::kReplace;
  ParseRemovalNorm(fields, &state);
  state.scale = fields->Number("scale", 1.0f);
  const char* conflict = state.Conflict();
  if (conflict != nullptr) fields->FailAt("gate_clamp_min", conflict);
  AttentionOp op = MakeLinearState(state, context, "rwkv7");
  ParseGateProjection(fields, &op);
  ParseReplace(fields, /*blend=*/true, context, &op);
  return op;
}

}  // namespace tarn::convert
