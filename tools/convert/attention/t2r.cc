// T2R: linear state with learned features, relu of one dense layer per head that q and k share.
#include <optional>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseT2r(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  LinearAttributes state;
  state.feature_map = FeatureMap::kMlpRelu;
  fields->Fix("feature_map", "mlp_relu");
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  state.q_input_scale = fields->PositiveNumber("q_input_scale", DefaultScale(heads));
  ParseQkNorm(fields, false, VectorNorm::kL2Outside, 1e-3f, &state);
  fields->Fix("gate", "none");
  ParseDenominator(fields, DenMode::kClampMin, 1e-2f, &state);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, "t2r");
  AddFeatureWeights(state, heads, "", Init::kLinear, &op.tensors);
  return op;
}

}  // namespace tarn::convert
