// Random feature attention: linear state with random Fourier or arc-cosine features, with or without a forget gate.
#include <optional>

#include "tools/convert/attention.h"

namespace tarn::convert {
namespace {

constexpr Choice<format::FeatureMap> kFeatureMaps[] = {{"gaussian", format::FeatureMap::Gaussian},
                                                       {"arccos", format::FeatureMap::Arccos}};
constexpr Choice<format::Gate> kGates[] = {{"none", format::Gate::None}, {"forget", format::Gate::Forget}};
constexpr Choice<format::VectorNorm> kNormModes[] = {{"outside", format::VectorNorm::L2Outside},
                                                     {"inside", format::VectorNorm::L2Inside}};
constexpr Choice<format::DenMode> kDenModes[] = {{"none", format::DenMode::None},
                                                 {"add", format::DenMode::Add},
                                                 {"clamp_min", format::DenMode::ClampMin},
                                                 {"abs_clamp_min", format::DenMode::AbsClampMin}};

// random_matrix [Hkv, D, d] and sigma [Hkv, d] -> sigma * random_matrix as [Hkv, d, D].
AttentionTensor Projection(const format::Heads& heads, uint32_t num_features) {
  const uint32_t kv_heads = heads.kv_heads(), d = heads.head_dim(), features = num_features;
  const auto fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(parts[0].size());
    for (size_t h = 0; h < kv_heads; ++h) {
      for (size_t f = 0; f < features; ++f) {
        for (size_t i = 0; i < d; ++i) {
          const double weight = parts[0][(h * features + f) * d + i];
          out[(h * d + i) * features + f] = static_cast<float>(weight * static_cast<double>(parts[1][h * d + i]));
        }
      }
    }
    return out;
  };
  return {"projection",
          {kv_heads, d, features},
          {{"random_matrix", {kv_heads, features, d}, Init::kNormal}, {"sigma", {kv_heads, d}, Init::kOne}},
          fold};
}

}  // namespace

AttentionOp ParseRfa(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  const auto feature_map = fields->OneOf("feature_map", kFeatureMaps);
  const uint32_t num_features = fields->Size("num_features", std::nullopt, kMaxFeatures);
  const auto gate = fields->OneOf<format::Gate>("gate", kGates, format::Gate::None);
  const bool normalize = fields->Bool("normalize_qk", true);
  const auto norm_mode = fields->OneOf<format::VectorNorm>("norm_eps_mode", kNormModes, format::VectorNorm::L2Outside);
  const float norm_eps = fields->Number("norm_eps", 1e-3f);
  if (norm_eps < 0) fields->FailAt("norm_eps", "must not be negative");
  const auto den_mode = fields->OneOf<format::DenMode>("den_mode", kDenModes, format::DenMode::ClampMin);
  // A gated z is a convex combination, an ungated one a sum: the guard of the sum would fire at every token.
  const float den_eps = fields->Number("den_eps", gate == format::Gate::Forget ? 1e-3f : 1e-2f);
  const bool clamped = den_mode == format::DenMode::ClampMin || den_mode == format::DenMode::AbsClampMin;
  if (den_eps < 0 || (clamped && den_eps == 0)) fields->FailAt("den_eps", "must be above 0 (with \"add\": at least 0)");
  const float scale = fields->Number("scale", 1.0f);

  AttentionOp op;
  op.type = format::OpAttributes::LinearState;
  op.attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
    return format::CreateLinearState(builder, &heads, feature_map, num_features, /*input_scale=*/1, /*q_input_scale=*/1,
                                     normalize ? norm_mode : format::VectorNorm::None, norm_eps, gate, den_mode, den_eps, scale)
        .Union();
  };
  if (gate == format::Gate::Forget) {
    op.logits.push_back({"gate_logit", "g_proj", heads.kv_heads(), /*bias=*/true, /*with_qkv=*/true, /*shared=*/false,
                         Init::kLinear, Init::kGateBias});
  }
  op.tensors.push_back(Projection(heads, num_features));
  const uint32_t rows = feature_map == format::FeatureMap::Gaussian ? 2 * num_features : num_features;
  op.states.push_back({"S", {heads.kv_heads(), rows, heads.value_dim()}});
  if (den_mode != format::DenMode::None) op.states.push_back({"z", {heads.kv_heads(), rows}});
  return op;
}

}  // namespace tarn::convert
