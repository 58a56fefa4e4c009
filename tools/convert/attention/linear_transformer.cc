// The linear transformer: linear state with the features elu(x) + 1.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {

AttentionOp ParseLinearTransformer(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "elu_plus_one", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  LinearState state;
  state.feature_map = format::FeatureMap::EluPlusOne;
  state.den = ParseDenominator(fields, format::DenMode::Add, 1e-6f);
  state.scale = fields->Number("scale", 1.0f);
  return MakeLinearState(state, context, "linear_transformer");
}

}  // namespace tarn::convert
