#include "tools/convert/attention/linear_state.h"

#include <algorithm>
#include <cmath>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr Choice<VectorNorm> kNormModes[] = {{"outside", VectorNorm::kL2Outside}, {"inside", VectorNorm::kL2Inside}};

constexpr Choice<bool> kTanhOrNone[] = {{"none", false}, {"tanh", true}};

Offset<format::LinearState> Write(FlatBufferBuilder* builder, const LinearAttributes& state, const format::Heads& heads,
                                  const std::string& system) {
  const auto name = builder->CreateString(system);
  format::LinearStateBuilder table(*builder);
  table.add_heads(&heads);
  table.add_system(name);
#define TARN_WRITE_CHOICE(type, name, ...) table.add_##name(static_cast<uint8_t>(state.name));
#define TARN_WRITE_NUMBER(name, ...) table.add_##name(state.name);
#define TARN_WRITE_FLAG(name) table.add_##name(state.name);
  TARN_LINEAR_ATTRIBUTES(TARN_WRITE_CHOICE, TARN_WRITE_NUMBER, TARN_WRITE_NUMBER, TARN_WRITE_FLAG)
#undef TARN_WRITE_CHOICE
#undef TARN_WRITE_NUMBER
#undef TARN_WRITE_FLAG
  return table.Finish();
}

StateKind KindOf(const LinearAttributes& state) {
  // How long is known when the weights are.
  if (state.has_rates() || state.gate == Gate::kTied || state.is_replace()) return StateKind::kLasting;
  if (state.gate == Gate::kSigmoidVector) {
    return state.gate_min > -2 * kHalfRounding ? StateKind::kLasting
                                               : StateKind::kDecaying;  // a gate of 0 decays by exp(gate_min / 2)
  }
  if (state.gate == Gate::kVector) {
    // A gate of 0 decays by exp(-ln 2 / normalizer).
    const bool lasting = state.gate_min > -kHalfRounding || std::log(2.0f) / state.gate_normalizer < kHalfRounding;
    return lasting ? StateKind::kLasting : StateKind::kDecaying;
  }
  if (state.has_gate()) return StateKind::kDecaying;
  return state.is_delta() ? StateKind::kDelta : StateKind::kSum;
}

AttentionOp MakeCausal(const LinearAttributes& state, const format::Heads& heads, const std::string& system) {
  AttentionOp op;
  op.type = format::OpAttributes::LinearState;
  op.attributes = [=](FlatBufferBuilder& builder) { return Write(&builder, state, heads, system).Union(); };
  const Logits gate = InfoOf(state.gate).logits;
  const auto width = [&](Logits logits) {
    return static_cast<uint32_t>(LinearAttributes::LogitWidth(logits, heads.kv_heads(), state.Features(heads.head_dim())));
  };
  if (gate != Logits::kNone) {
    // A forget gate begins open, by its bias; the bias of a softplus gate is called dt_bias elsewhere.
    const bool per_head = gate == Logits::kPerHead;
    op.logits.push_back({"gate_logit", "g_proj", width(gate), /*bias=*/per_head, /*with_qkv=*/per_head, /*shared=*/false,
                         Init::kLinear, state.gate == Gate::kForget ? Init::kGateBias : Init::kZero});
  }
  if (state.has_beta_logits()) {
    const Logits beta = InfoOf(state.rule).logits;
    op.logits.push_back({"beta_logit", "b_proj", width(beta), /*bias=*/false, /*with_qkv=*/beta == Logits::kPerHead,
                         /*shared=*/false, Init::kLinear, Init::kZero});
  }
  StateInfo states[kMaxLinearStates];
  StatesOf(state, heads.kv_heads(), heads.head_dim(), heads.value_dim(), states);
  for (uint32_t i = 0; i < StateCount(state); ++i) op.states.push_back(ToGraphState(states[i]));
  op.num_sized_states = 1;
  op.state_kind = KindOf(state);
  if (state.has_rates() || (state.is_delta() && state.has_gate()) || state.key_heads > 0) op.features.push_back("gated_delta");
  if (state.gate == Gate::kTied) op.features.push_back("tied_gate");
  if (state.gate == Gate::kStep) op.features.push_back("skip");
  if (state.gate == Gate::kSigmoidVector || state.is_replace()) op.features.push_back("token_mix");
  return op;
}

// Whole sequences leave no state, sources S and z: a running maximum cancels when it is read.
AttentionOp MakeNoncausal(const LinearAttributes& state, const AttentionContext& context, const std::string& system) {
  AttentionOp op;
  const format::Heads heads = context.heads;
  const auto part = [=](format::NoncausalPart which) -> AttributeWriter {
    return [=](FlatBufferBuilder& builder) {
      const auto linear = Write(&builder, state, heads, system);
      return format::CreateNoncausalLinear(builder, which, linear).Union();
    };
  };
  SetNoncausalOp(context.form, format::OpAttributes::NoncausalLinear, part, &op);
  if (context.form == AttentionForm::kNoncausal) return op;
  const uint32_t kv_heads = heads.kv_heads(), rows = static_cast<uint32_t>(state.Features(heads.head_dim()));
  op.states.push_back(SourceState("S", {kv_heads, rows, heads.value_dim()}));
  if (state.has_denominator()) op.states.push_back(SourceState("z", {kv_heads, rows}));
  op.num_sized_states = 1;
  op.scales = {{0, SourceState("scales", {kv_heads, rows})}};
  return op;
}

}  // namespace

AttentionOp MakeLinearState(const LinearAttributes& state, const AttentionContext& context, const std::string& system) {
  LinearAttributes causal = state;
  causal.key_heads = context.key_heads;
  AttentionOp op =
      context.form == AttentionForm::kCausal ? MakeCausal(causal, context.heads, system) : MakeNoncausal(state, context, system);
  if (state.feature_map == FeatureMap::kProduct || state.feature_map == FeatureMap::kHedgehog || state.own_q_map ||
      state.q_norm_eps >= 0) {
    op.features.push_back("feature_maps");
  }
  return op;
}

AttentionTensor Projection(const format::Heads& heads, uint32_t num_features, const std::vector<std::string>& matrices, Init init,
                           bool sigma) {
  const uint32_t kv_heads = heads.kv_heads(), d = heads.head_dim(), rows = num_features;
  const auto count = static_cast<uint32_t>(matrices.size());
  const auto fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(count * parts[0].size());
    for (size_t h = 0; h < kv_heads; ++h) {
      for (size_t f = 0; f < size_t{count} * rows; ++f) {
        const float* weights = parts[f / rows].data() + (h * rows + f % rows) * d;
        for (size_t i = 0; i < d; ++i) {
          const double factor = sigma ? static_cast<double>(parts[count][h * d + i]) : 1.0;
          out[(h * d + i) * count * rows + f] = static_cast<float>(double{weights[i]} * factor);
        }
      }
    }
    return out;
  };
  std::vector<WeightSpec> parts;
  for (const std::string& matrix : matrices) parts.push_back({matrix, {kv_heads, rows, d}, init});
  if (sigma) parts.push_back({"sigma", {kv_heads, d}, Init::kOne});
  return {"projection", {kv_heads, d, count * rows}, std::move(parts), fold};
}

void AddFeatureWeights(const LinearAttributes& state, const format::Heads& heads, const std::string& prefix, Init init,
                       std::vector<AttentionTensor>* tensors) {
  std::vector<std::string> factors = {prefix + "feature"};
  if (state.feature_map == FeatureMap::kProduct) factors.push_back(prefix + "factor");
  const auto count = static_cast<uint32_t>(factors.size());
  const uint32_t kv_heads = heads.kv_heads(), rows = state.num_features / count;
  std::vector<std::string> matrices;
  for (const std::string& factor : factors) matrices.push_back(factor + "_weight");
  tensors->push_back(Projection(heads, rows, matrices, init, /*sigma=*/false));
  tensors->back().name = prefix + tensors->back().name;
  if (!state.map().bias) return;
  AttentionTensor bias = {prefix + "feature_bias", {kv_heads, state.num_features}, {}, nullptr};
  for (const std::string& factor : factors) bias.parts.push_back({factor + "_bias", {kv_heads, rows}, Init::kZero});
  bias.fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out;
    for (size_t h = 0; h < kv_heads; ++h) {
      for (const std::vector<float>& part : parts) out.insert(out.end(), &part[h * rows], &part[h * rows] + rows);
    }
    return out;
  };
  tensors->push_back(std::move(bias));
}

AttentionTensor DecayRates(const format::Heads& heads) {
  const auto fold = [](const std::vector<std::vector<float>>& parts) {
    std::vector<float> rates;
    for (const float log : parts[0]) {
      rates.push_back(std::exp(log));
      if (!std::isfinite(rates.back())) Fail("A_log: ", log, " found, a number whose exponential is finite expected");
    }
    return rates;
  };
  return {"rate", {heads.kv_heads()}, {{"A_log", {heads.kv_heads()}, Init::kZero}}, fold};
}

void ParseDenominator(Fields* fields, DenMode mode, float eps, LinearAttributes* state) {
  state->den_mode = fields->OneOf<DenMode>("den_mode", kDenModeNames, mode);
  const bool clamped = state->den_mode == DenMode::kClampMin || state->den_mode == DenMode::kAbsClampMin;
  state->den_eps = fields->Number("den_eps", eps, clamped ? NumberRange::kPositive : NumberRange::kNotNegative);
  if (state->has_running_max() && !state->has_denominator()) {
    fields->FailAt("den_mode", "\"none\" is not supported with a running maximum, which cancels in a quotient alone");
  }
}

void ParseQkNorm(Fields* fields, bool normalize, VectorNorm kind, float eps, LinearAttributes* state) {
  const bool on = fields->Bool("normalize_qk", normalize);
  state->qk_norm = fields->OneOf<VectorNorm>("norm_eps_mode", kNormModes, kind);
  state->qk_norm_eps = fields->NonNegativeNumber("norm_eps", eps);
  if (fields->Find("q_norm_eps", "number, 0 or more", "norm_eps") != nullptr) {
    state->q_norm_eps = fields->NonNegativeNumber("q_norm_eps");
  }
  if (on) return;
  state->qk_norm = VectorNorm::kNone;
  state->q_norm_eps = -1;  // no file need name a feature for it
}

void ParseNu(Fields* fields, const format::Heads& heads, LinearAttributes* state) {
  const uint32_t nu = fields->Size("nu", std::nullopt, kMaxNu);
  const uint32_t products = 2 * heads.head_dim();
  if (nu >= products) {
    fields->FailAt("nu", std::to_string(nu) + " is not below 2 head_dim = " + std::to_string(products) + ": products would repeat");
  }
  if (products * nu > kMaxFeatures) fields->FailAt("nu", std::to_string(nu) + " times 2 head_dim are too many features");
  state->nu = nu;
}

void ParseVectorGate(Fields* fields, LinearAttributes* state) {
  state->gate_normalizer = fields->PositiveNumber("gate_normalizer", 16.0f);
  const Json* value = fields->Find("gate_clamp_min", "null or a number up to 0", "null");
  if (value == nullptr || value->is_null()) return;  // any decay
  state->gate_min = fields->Number("gate_clamp_min");
  if (state->gate_min > 0) fields->FailAt("gate_clamp_min", ValueText(*value) + " is above 0: rows would grow");
}

void ParseSteps(Fields* fields, LinearAttributes* state) {
  state->step_min = fields->NonNegativeNumber("step_min", 0.0f);
  const Json* most = fields->Find("step_max", "null or a number above 0, at least step_min", "null");
  if (most == nullptr || most->is_null()) return;
  state->step_max = fields->PositiveNumber("step_max");
  if (state->step_max < state->step_min) fields->FailAt("step_max", ValueText(*most) + " is below step_min");
}

void ParseGateProjection(Fields* fields, AttentionOp* op) {
  LogitInput& gate = op->logits[0];
  if (!gate.with_qkv && fields->Bool("gate_low_rank", false)) {
    gate.rank = fields->Size("gate_rank", 16);
    gate.tanh = fields->OneOf<bool>("gate_hidden_act", kTanhOrNone, false);
  }
  gate.bias = fields->Bool("gate_bias", gate.bias);
}

void ParseRemovalNorm(Fields* fields, LinearAttributes* state) {
  state->removal_norm = fields->OneOf<VectorNorm>("removal_norm", kVectorNormNames, VectorNorm::kL2Inside);
  state->removal_norm_eps = fields->NonNegativeNumber("removal_norm_eps", 1e-6f);
}

void ParseReplace(Fields* fields, bool blend, const AttentionContext& context, AttentionOp* op) {
  LogitInput& strengths = op->logits.back();
  if (fields->Bool("beta_low_rank", false)) strengths.rank = fields->Size("beta_rank", 16);
  ParseBetaProjection(fields, op);
  op->reads_removal = true;
  op->blends_keys = fields->Bool("key_blend", blend);
  const uint32_t kv_heads = context.heads.kv_heads(), d = context.heads.head_dim();
  const auto fold = [](const std::vector<std::vector<float>>& parts) { return parts[0]; };
  op->tensors.push_back({"removal", {kv_heads, d}, {{"k_removal", {kv_heads * d}, Init::kOne}}, fold});
}

void ParseBetaProjection(Fields* fields, AttentionOp* op) { op->logits.back().bias = fields->Bool("beta_bias", false); }

float ParseBetaScale(Fields* fields) {
  const float scale = fields->PositiveNumber("beta_scale", 1.0f);
  if (scale > 2)
    fields->FailAt("beta_scale", ValueText(*fields->Find("beta_scale")) + " is above 2: the state would grow without end");
  return scale;
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
