// The linear transformer: linear state with the features elu(x) + 1.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseLinearTransformer(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "elu_plus_one", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  LinearAttributes state;
  state.feature_map = FeatureMap::kEluPlusOne;
  ParseDenominator(fields, DenMode::kAdd, 1e-6f, &state);
  state.scale = fields->Number("scale", 1.0f);
  return MakeLinearState(state, context, "linear_transformer");
}

}  // namespace tarn::convert
