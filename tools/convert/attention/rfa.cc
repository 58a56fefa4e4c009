// Random feature attention: linear state with random Fourier or arc-cosine features, with or without a forget gate; and its
// norm-free form, whose keys weigh exp(|sigma k|^2 / 2) instead of being normalised.
#include <optional>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

constexpr Choice<FeatureMap> kFeatureMaps[] = {{"gaussian", FeatureMap::kGaussian}, {"arccos", FeatureMap::kArccos}};
constexpr Choice<Gate> kGates[] = {{"none", Gate::kNone}, {"forget", Gate::kForget}};
constexpr float kDenEps = 1e-2f;
// A gated z is a convex combination, an ungated one a sum: the guard of the sum would fire at every token.
constexpr float kGatedDenEps = 1e-3f;

}  // namespace

AttentionOp ParseRfa(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  LinearAttributes state;
  state.feature_map = fields->OneOf("feature_map", kFeatureMaps);
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  state.gate = fields->OneOf<Gate>("gate", kGates, Gate::kNone);
  const bool gated = state.gate == Gate::kForget;
  if (gated && context.form != AttentionForm::kCausal) {
    fields->FailAt("gate", "\"forget\" has only a causal form: whole sequences have no last token");
  }
  ParseQkNorm(fields, true, VectorNorm::kL2Outside, 1e-3f, &state);
  ParseDenominator(fields, DenMode::kClampMin, gated ? kGatedDenEps : kDenEps, &state);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, gated ? "rfa_gate" : "rfa");
  if (gated) ParseGateProjection(fields, &op);
  op.tensors.push_back(Projection(heads, state.num_features, {"random_matrix"}, Init::kNormal, /*sigma=*/true));
  return op;
}

AttentionOp ParseRfaNormfree(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  LinearAttributes state;
  state.feature_map = FeatureMap::kGaussian;
  fields->Fix("feature_map", "gaussian");
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  fields->Fix("gate", "none");
  // With normalised keys, or without their weight, it would be the system "rfa".
  ParseQkNorm(fields, false, VectorNorm::kL2Outside, 1e-3f, &state);
  fields->Fix("normalize_qk", false);
  fields->Fix("key_norm_weight", true);
  state.key_norm_weight = state.key_norm_sigma = true;
  ParseDenominator(fields, DenMode::kClampMin, kDenEps, &state);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, "rfa_normfree");
  op.tensors.push_back(Projection(heads, state.num_features, {"random_matrix"}, Init::kNormal, /*sigma=*/true));
  const std::vector<uint32_t> shape = {heads.kv_heads(), heads.head_dim()};
  op.tensors.push_back({"sigma", shape, {{"sigma", shape, Init::kOne}}, nullptr});
  return op;
}

}  // namespace tarn::convert
