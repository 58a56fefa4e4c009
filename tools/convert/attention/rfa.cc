// Random feature attention: linear state with random Fourier or arc-cosine features, with or without a forget gate; and its
// norm-free form, whose keys weigh exp(|sigma k|^2 / 2) instead of being normalised.
#include <optional>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

constexpr Choice<format::FeatureMap> kFeatureMaps[] = {{"gaussian", format::FeatureMap::Gaussian},
                                                       {"arccos", format::FeatureMap::Arccos}};
constexpr Choice<format::Gate> kGates[] = {{"none", format::Gate::None}, {"forget", format::Gate::Forget}};
constexpr float kDenEps = 1e-2f;
// A gated z is a convex combination, an ungated one a sum: the guard of the sum would fire at every token.
constexpr float kGatedDenEps = 1e-3f;

}  // namespace

AttentionOp ParseRfa(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  LinearState state;
  state.feature_map = fields->OneOf("feature_map", kFeatureMaps);
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  state.gate = fields->OneOf<format::Gate>("gate", kGates, format::Gate::None);
  const bool gated = state.gate == format::Gate::Forget;
  if (gated && context.form != AttentionForm::kCausal) {
    fields->FailAt("gate", "\"forget\" has only a causal form: whole sequences have no last token");
  }
  state.qk_norm = ParseQkNorm(fields, true, format::VectorNorm::L2Outside, 1e-3f);
  state.den = ParseDenominator(fields, format::DenMode::ClampMin, gated ? kGatedDenEps : kDenEps);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, gated ? "rfa_gate" : "rfa");
  op.tensors.push_back(Projection(heads, state.num_features, "random_matrix", Init::kNormal, /*sigma=*/true));
  return op;
}

AttentionOp ParseRfaNormfree(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  LinearState state;
  state.feature_map = format::FeatureMap::Gaussian;
  fields->Fix("feature_map", "gaussian");
  state.num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  fields->Fix("gate", "none");
  // With normalised keys, or without their weight, it would be the system "rfa".
  state.qk_norm = ParseQkNorm(fields, false, format::VectorNorm::L2Outside, 1e-3f);
  fields->Fix("normalize_qk", false);
  fields->Fix("key_norm_weight", true);
  state.key_norm_weight = state.key_norm_sigma = true;
  state.den = ParseDenominator(fields, format::DenMode::ClampMin, kDenEps);
  state.scale = fields->Number("scale", 1.0f);

  AttentionOp op = MakeLinearState(state, context, "rfa_normfree");
  op.tensors.push_back(Projection(heads, state.num_features, "random_matrix", Init::kNormal, /*sigma=*/true));
  const std::vector<uint32_t> shape = {heads.kv_heads(), heads.head_dim()};
  op.tensors.push_back({"sigma", shape, {{"sigma", shape, Init::kOne}}, nullptr});
  return op;
}

}  // namespace tarn::convert
