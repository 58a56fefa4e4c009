#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint32_t kMaxNu = 64;  // of the runtime

constexpr Choice<format::VectorNorm> kNormModes[] = {{"outside", format::VectorNorm::L2Outside},
                                                     {"inside", format::VectorNorm::L2Inside}};
constexpr Choice<format::DenMode> kDenModes[] = {{"none", format::DenMode::None},
                                                 {"add", format::DenMode::Add},
                                                 {"clamp_min", format::DenMode::ClampMin},
                                                 {"abs_clamp_min", format::DenMode::AbsClampMin}};

// M
uint32_t FeatureRows(const LinearState& state, const format::Heads& heads) {
  switch (state.feature_map) {
    case format::FeatureMap::Gaussian:
      return 2 * state.num_features;
    case format::FeatureMap::Dpfp:
      return 2 * heads.head_dim() * state.nu;
    default:
      return state.num_features > 0 ? state.num_features : heads.head_dim();
  }
}

Offset<format::LinearState> Attributes(FlatBufferBuilder* builder, const LinearState& state, const format::Heads& heads,
                                       const std::string& system) {
  const auto name = builder->CreateString(system);
  return format::CreateLinearState(*builder, &heads, state.feature_map, state.num_features, state.input_scale, state.q_input_scale,
                                   state.qk_norm.kind, state.qk_norm.eps, state.gate, state.den.mode, state.den.eps, state.scale,
                                   name, state.ratio, state.feature_eps, state.projection, state.nu, state.negate_second,
                                   state.sum_norm_eps.has_value(), state.sum_norm_eps.value_or(0.0f), state.key_norm_weight,
                                   state.key_norm_sigma, state.gate_normalizer, state.gate_min, state.rule, state.beta_scale,
                                   state.attention_normalized);
}

AttentionOp MakeCausal(const LinearState& state, const format::Heads& heads, const std::string& system) {
  AttentionOp op;
  op.type = format::OpAttributes::LinearState;
  op.attributes = [=](FlatBufferBuilder& builder) { return Attributes(&builder, state, heads, system).Union(); };
  const uint32_t kv_heads = heads.kv_heads(), rows = FeatureRows(state, heads);
  if (state.gate == format::Gate::Forget) {
    op.logits.push_back(
        {"gate_logit", "g_proj", kv_heads, /*bias=*/true, /*with_qkv=*/true, /*shared=*/false, Init::kLinear, Init::kGateBias});
  }
  if (state.gate == format::Gate::Vector) {
    op.logits.push_back({"gate_logit", "g_proj", kv_heads * rows, /*bias=*/false, /*with_qkv=*/false, /*shared=*/false,
                         Init::kLinear, Init::kZero});
  }
  if (state.rule == format::WriteRule::Delta) {
    op.logits.push_back(
        {"beta_logit", "b_proj", kv_heads, /*bias=*/false, /*with_qkv=*/true, /*shared=*/false, Init::kLinear, Init::kZero});
  }

  op.states.push_back({"S", {kv_heads, rows, heads.value_dim()}});
  if (state.den.mode != format::DenMode::None || state.attention_normalized) op.states.push_back({"z", {kv_heads, rows}});
  if (state.feature_map == format::FeatureMap::Positive || state.key_norm_weight) op.states.push_back({"m", {kv_heads}});
  op.num_sized_states = 1;
  if (state.gate != format::Gate::None) {
    op.state_kind = StateKind::kDecaying;
  } else {
    op.state_kind = state.rule == format::WriteRule::Delta ? StateKind::kDelta : StateKind::kSum;
  }
  return op;
}

// Whole sequences leave no state, sources S and z: a running maximum cancels when it is read.
AttentionOp MakeNoncausal(const LinearState& state, const AttentionContext& context, const std::string& system) {
  AttentionOp op;
  const format::Heads heads = context.heads;
  const auto part = [=](format::NoncausalPart which) -> AttributeWriter {
    return [=](FlatBufferBuilder& builder) {
      const auto linear = Attributes(&builder, state, heads, system);
      return format::CreateNoncausalLinear(builder, which, linear).Union();
    };
  };
  SetNoncausalOp(context.form, format::OpAttributes::NoncausalLinear, part, &op);
  if (context.form == AttentionForm::kNoncausal) return op;
  const uint32_t kv_heads = heads.kv_heads(), rows = FeatureRows(state, heads);
  op.states.push_back(SourceState("S", {kv_heads, rows, heads.value_dim()}));
  if (state.den.mode != format::DenMode::None) op.states.push_back(SourceState("z", {kv_heads, rows}));
  op.num_sized_states = 1;
  op.scales = {{0, SourceState("scales", {kv_heads, rows})}};
  return op;
}

}  // namespace

AttentionOp MakeLinearState(const LinearState& state, const AttentionContext& context, const std::string& system) {
  return context.form == AttentionForm::kCausal ? MakeCausal(state, context.heads, system) : MakeNoncausal(state, context, system);
}

AttentionTensor Projection(const format::Heads& heads, uint32_t num_features, const char* matrix, Init init, bool sigma) {
  const uint32_t kv_heads = heads.kv_heads(), d = heads.head_dim(), features = num_features;
  const auto fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(parts[0].size());
    for (size_t h = 0; h < kv_heads; ++h) {
      for (size_t f = 0; f < features; ++f) {
        for (size_t i = 0; i < d; ++i) {
          const double factor = sigma ? static_cast<double>(parts[1][h * d + i]) : 1.0;
          const double weight = parts[0][(h * features + f) * d + i];
          out[(h * d + i) * features + f] = static_cast<float>(weight * factor);
        }
      }
    }
    return out;
  };
  std::vector<WeightSpec> parts = {{matrix, {kv_heads, features, d}, init}};
  if (sigma) parts.push_back({"sigma", {kv_heads, d}, Init::kOne});
  return {"projection", {kv_heads, d, features}, std::move(parts), fold};
}

Denominator ParseDenominator(Fields* fields, format::DenMode mode, float eps) {
  const Denominator den = {fields->OneOf<format::DenMode>("den_mode", kDenModes, mode), fields->Number("den_eps", eps)};
  const bool clamped = den.mode == format::DenMode::ClampMin || den.mode == format::DenMode::AbsClampMin;
  if (den.eps < 0 || (clamped && den.eps == 0)) fields->FailAt("den_eps", "must be above 0 (with \"add\": at least 0)");
  return den;
}

QkNorm ParseQkNorm(Fields* fields, bool normalize, format::VectorNorm kind, float eps) {
  const bool on = fields->Bool("normalize_qk", normalize);
  QkNorm norm = {fields->OneOf<format::VectorNorm>("norm_eps_mode", kNormModes, kind), fields->Number("norm_eps", eps)};
  if (norm.eps < 0) fields->FailAt("norm_eps", "must not be negative");
  if (!on) norm.kind = format::VectorNorm::None;
  return norm;
}

uint32_t ParseNu(Fields* fields, const format::Heads& heads) {
  const uint32_t nu = fields->Size("nu", std::nullopt, kMaxNu);
  const uint32_t products = 2 * heads.head_dim();
  if (nu >= products) {
    fields->FailAt("nu", std::to_string(nu) + " is not below 2 head_dim = " + std::to_string(products) + ": products would repeat");
  }
  if (products * nu > kMaxFeatures) fields->FailAt("nu", std::to_string(nu) + " times 2 head_dim are too many features");
  return nu;
}

void FixFeatures(Fields* fields, const char* feature_map, uint32_t num_features) {
  fields->Fix("feature_map", feature_map);
  fields->Fix("num_features", num_features);
}

void FixUndivided(Fields* fields) {
  fields->Fix("den_mode", "none");
  fields->Fix("den_eps", 0);
}

}  // namespace tarn::convert
