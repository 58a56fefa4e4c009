// Performers: linear state with random features of the softmax kernel, trigonometric (v1) or positive (v2, FAVOR+), or with
// rectified features.
#include <cmath>
#include <optional>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

// d^-1/4 on both q and k is d^-1/2 on their product.
float InputScale(const format::Heads& heads) { return static_cast<float>(std::pow(static_cast<double>(heads.head_dim()), -0.25)); }

AttentionTensor RandomMatrix(const format::Heads& heads, uint32_t num_features) {
  return Projection(heads, num_features, {"random_matrix"}, Init::kNormal, /*sigma=*/false);
}

}  // namespace

AttentionOp ParsePerformerTrig(Fields* fields, const AttentionContext& context) {
  LinearAttributes state;
  state.feature_map = FeatureMap::kGaussian;
  fields->Fix("feature_map", "gaussian");
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  state.input_scale = fields->PositiveNumber("input_scale", InputScale(context.heads));
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  fields->Fix("key_norm_weight", true);
  state.key_norm_weight = true;
  ParseDenominator(fields, DenMode::kClampMin, 1e-2f, &state);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, "performer_trig");
  op.tensors.push_back(RandomMatrix(context.heads, state.num_features));
  return op;
}

AttentionOp ParsePerformerPositive(Fields* fields, const AttentionContext& context) {
  LinearAttributes state;
  state.feature_map = FeatureMap::kPositive;
  fields->Fix("feature_map", "positive");
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  state.input_scale = fields->PositiveNumber("input_scale", InputScale(context.heads));
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  // Another one counts relative to the largest key of the whole sequence, later tokens included.
  if (context.form == AttentionForm::kCausal) fields->Fix("feature_eps", 0);
  state.feature_eps = fields->NonNegativeNumber("feature_eps", 0.0f);
  ParseDenominator(fields, DenMode::kAdd, 1e-6f, &state);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, "performer_positive");
  op.tensors.push_back(RandomMatrix(context.heads, state.num_features));
  return op;
}

AttentionOp ParsePerformerRelu(Fields* fields, const AttentionContext& context) {
  LinearAttributes state;
  state.feature_map = FeatureMap::kRelu;
  state.projection = fields->Bool("projection", false);
  if (state.projection) {
    fields->Fix("feature_map", "relu");
    state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  } else {
    FixFeatures(fields, "relu", context.heads.head_dim());
  }
  state.input_scale = fields->PositiveNumber("input_scale", 1.0f);
  state.ratio = fields->PositiveNumber("ratio", 1.0f);
  state.feature_eps = fields->NonNegativeNumber("feature_eps", 1e-3f);
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  ParseDenominator(fields, DenMode::kAdd, 1e-6f, &state);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, "performer_relu");
  if (state.projection) op.tensors.push_back(RandomMatrix(context.heads, state.num_features));
  return op;
}

}  // namespace tarn::convert
