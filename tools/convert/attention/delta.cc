// Delta rules: linear state that takes away what a key has stored before it writes. delta_rule has the features of fast weight
// programmers, divided by their sum; DeltaNet has the l2-normalised keys themselves; in Gated DeltaNet the state decays, too.
#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

// A decay of each head (Gated DeltaNet), or of each of its channels (Kimi Delta Attention).
constexpr Choice<Gate> kDecays[] = {{"softplus", Gate::kSoftplus}, {"softplus_vector", Gate::kSoftplusVector}};

constexpr Choice<FeatureMap> kFeatureMaps[] = {{"dpfp", FeatureMap::kDpfp}, {"elu_plus_one", FeatureMap::kEluPlusOne}};

// feature_map, nu and how features are divided by their sum
void ParseFeatures(Fields* fields, const format::Heads& heads, LinearAttributes* state) {
  state->feature_map = fields->OneOf<FeatureMap>("feature_map", kFeatureMaps, FeatureMap::kDpfp);
  const bool dpfp = state->feature_map == FeatureMap::kDpfp;
  if (dpfp || fields->Has("nu")) ParseNu(fields, heads, state);
  fields->Fix("num_features", dpfp ? 2 * heads.head_dim() * state->nu : heads.head_dim());
  fields->Fix("dpfp_variant", "paper");  // features of both signs have no sum to be divided by
  fields->Fix("feature_norm", "sum");    // without it the state grows without end
  state->sum_norm = true;
  state->sum_norm_eps = fields->NonNegativeNumber("sum_norm_eps", 1e-6f);
}

// The delta rule over l2-normalised keys, but for its gate.
LinearAttributes ParseUnitKeys(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("feature_norm", "none");
  fields->Fix("attention_normalized", false);
  FixUndivided(fields);
  LinearAttributes state;
  state.rule = WriteRule::kDelta;
  ParseQkNorm(fields, true, VectorNorm::kL2Inside, 1e-6f, &state);
  state.beta_scale = ParseBetaScale(fields);
  state.scale = fields->Number("scale", DefaultScale(context.heads));
  return state;
}

}  // namespace

AttentionOp ParseDeltaRule(Fields* fields, const AttentionContext& context) {
  LinearAttributes state;
  state.rule = WriteRule::kDelta;
  ParseFeatures(fields, context.heads, &state);
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  state.beta_scale = ParseBetaScale(fields);
  state.attention_normalized = fields->Bool("attention_normalized", false);
  if (state.attention_normalized) {
    fields->Fix("den_mode", "add");
    state.den_eps = fields->NonNegativeNumber("den_eps", 1e-5f);
  } else {
    FixUndivided(fields);
  }
  state.scale = fields->Number("scale", 1.0f);
  AttentionOp op = MakeLinearState(state, context, "delta_rule");
  ParseBetaProjection(fields, &op);
  return op;
}

AttentionOp ParseDeltaNet(Fields* fields, const AttentionContext& context) {
  fields->Fix("gate", "none");
  AttentionOp op = MakeLinearState(ParseUnitKeys(fields, context), context, "deltanet");
  ParseBetaProjection(fields, &op);
  return op;
}

AttentionOp ParseGatedDeltaNet(Fields* fields, const AttentionContext& context) {
  LinearAttributes state = ParseUnitKeys(fields, context);
  state.gate = fields->OneOf<Gate>("gate", kDecays, Gate::kSoftplus);
  AttentionOp op = MakeLinearState(state, context, "gated_deltanet");
  ParseGateProjection(fields, &op);
  ParseBetaProjection(fields, &op);
  op.tensors.push_back(DecayRates(context.heads));
  return op;
}

}  // namespace tarn::convert
