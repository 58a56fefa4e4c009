// Linear state with any feature map, gate and write rule of variants/: what a paper without a name of its own here is converted as.
#include <optional>
#include <string>
#include <vector>

#include "tools/convert/attention/linear_state.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

void ParseMap(Fields* fields, const AttentionContext& context, LinearAttributes* state) {
  state->feature_map = fields->OneOfList<FeatureMap>("feature_map", kFeatureMaps);
  const FeatureMapInfo& map = state->map();
  if (map.projection == Projection::kOptional) state->projection = fields->Bool("projection", false);
  if (state->has_projection()) {
    const uint32_t factors = state->feature_map == FeatureMap::kProduct ? 2 : 1;
    state->num_features = factors * fields->Size("num_features", std::nullopt, kMaxFeatures / factors);
    state->own_q_map = fields->Bool("own_q_map", false);
  }
  if ((map.attributes & kReadsRatio) != 0) state->ratio = fields->PositiveNumber("ratio", 1.0f);
  if ((map.attributes & kReadsFeatureEps) != 0) {
    // Beside log weights, another one counts relative to the largest key of the whole sequence, later tokens included.
    if (map.log_weights && context.form == AttentionForm::kCausal) fields->Fix("feature_eps", 0);
    state->feature_eps = fields->NonNegativeNumber("feature_eps", 0.0f);
  }
  if ((map.attributes & kReadsNu) != 0) ParseNu(fields, context.heads, state);
  if ((map.attributes & kReadsNegateSecond) != 0) state->negate_second = fields->Bool("negate_second", false);
}

void AddTensors(const LinearAttributes& state, const AttentionContext& context, AttentionOp* op) {
  const format::Heads& heads = context.heads;
  const uint32_t kv_heads = heads.kv_heads();
  if (state.has_projection()) AddFeatureWeights(state, heads, "", Init::kNormal, &op->tensors);
  if (state.own_q_map) AddFeatureWeights(state, heads, "q_", Init::kNormal, &op->tensors);
  const auto add = [&](const char* name, std::vector<uint32_t> shape, Init init) {
    op->tensors.push_back({name, shape, {{name, shape, init}}, nullptr});
  };
  if (state.key_norm_sigma) add("sigma", {kv_heads, heads.head_dim()}, Init::kOne);
  if (state.has_rates()) op->tensors.push_back(DecayRates(heads));
  if (state.gate_bounds) {
    op->tensors.push_back(LowerBounds("bound", {context.heads.kv_heads(), context.heads.head_dim()}, context));
  }
  if (state.gate == Gate::kConstant) {
    add("decay", {kv_heads}, Init::kOne);
    op->tensors.back().fold = [](const std::vector<std::vector<float>>& parts) {
      for (const float decay : parts[0]) {
        if (!(decay > 0 && decay <= 1)) Fail("decay: ", decay, " found, a number above 0 and at most 1 expected");
      }
      return parts[0];
    };
    op->state_kind = StateKind::kLasting;  // how long is known when the weights are
  }
}

// Errors: attributes that cannot stand together, or not in this form; products that are out of range.
void CheckCombination(Fields* fields, const AttentionContext& context, const LinearAttributes& state) {
  const char* conflict = state.Conflict();
  if (conflict != nullptr) Fail(fields->where(), ": ", conflict);
  if (context.form != AttentionForm::kCausal && !state.has_noncausal_form()) {
    const bool by_rule = !InfoOf(state.rule).noncausal;
    fields->FailAt(by_rule ? "rule" : "gate",
                   std::string(by_rule ? InfoOf(state.rule).name : InfoOf(state.gate).name) + " has only a causal form");
  }
  if (!IsWithin(Bounds::kPositive, state.q_scale())) {
    Fail(fields->where(), ": input_scale * q_input_scale is ", state.q_scale(), ", ", TextOf(Bounds::kPositive), " expected");
  }
  const uint64_t features = uint64_t{context.heads.kv_heads()} * state.Features(context.heads.head_dim());
  if (features > Fields::kMaxSize) fields->FailAt("feature_map", std::to_string(features) + " features in all heads are too many");
  for (const auto& number : kLinearNumbers) {
    if (IsWithin(number.bounds, state.*number.value)) continue;
    Fail(fields->where(), ": ", number.name, " is ", state.*number.value, ", ", TextOf(number.bounds), " expected");
  }
}

}  // namespace

AttentionOp ParseLinearAttention(Fields* fields, const AttentionContext& context) {
  LinearAttributes state;
  ParseMap(fields, context, &state);
  state.input_scale = fields->PositiveNumber("input_scale", 1.0f);
  state.q_input_scale = fields->PositiveNumber("q_input_scale", 1.0f);
  ParseQkNorm(fields, false, VectorNorm::kL2Outside, 1e-6f, &state);
  state.sum_norm = fields->Bool("sum_norm", false);
  if (state.sum_norm) {
    if (state.negate_second || state.feature_map == FeatureMap::kProduct) {
      fields->FailAt("sum_norm", "features of both signs have no sum to be divided by");
    }
    state.sum_norm_eps = fields->NonNegativeNumber("sum_norm_eps", 1e-6f);
  }
  state.key_norm_weight = fields->Bool("key_norm_weight", false);
  state.key_norm_sigma = fields->Bool("key_norm_sigma", false);
  state.gate = fields->OneOfList<Gate>("gate", kGates, Gate::kNone);
  if (state.gate == Gate::kVector) ParseVectorGate(fields, &state);
  if (state.gate == Gate::kTied) state.gate_bounds = fields->Bool("lower_bounds", false);
  if (state.gate == Gate::kStep) ParseSteps(fields, &state);
  if (state.gate == Gate::kSigmoidVector) state.gate_min = fields->Number("gate_clamp_min", kLeastLogDecay);
  state.rule = fields->OneOfList<WriteRule>("rule", kWriteRules, WriteRule::kSum);
  if (state.is_delta()) {
    state.beta_scale = ParseBetaScale(fields);
    state.attention_normalized = fields->Bool("attention_normalized", false);
  }
  if (state.is_replace()) {
    ParseRemovalNorm(fields, &state);
    if (state.feature_map != FeatureMap::kIdentity) fields->FailAt("rule", "\"replace\" is for feature_map \"identity\"");
  }
  ParseDenominator(fields, state.has_running_max() ? DenMode::kAdd : DenMode::kNone, 1e-6f, &state);
  state.scale = fields->Number("scale", 1.0f);

  CheckCombination(fields, context, state);
  AttentionOp op = MakeLinearState(state, context, "linear_attention");
  if (state.has_gate_logits()) ParseGateProjection(fields, &op);
  if (state.is_delta()) ParseBetaProjection(fields, &op);
  AddTensors(state, context, &op);
  if (state.is_replace()) ParseReplace(fields, /*blend=*/false, context, &op);
  return op;
}

}  // namespace tarn::convert
