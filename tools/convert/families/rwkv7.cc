// rwkv7, as flash-linear-attention has it. Its key, value and x_k of the MLP are called ffn there, r is q, w the decay, a how much
// a removal key takes away.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tools/convert/families/family.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// How a model is trained, and which of several equal implementations runs.
constexpr const char* kIgnored[] = {"attn_mode", "fuse_cross_entropy", "fuse_linear_cross_entropy", "max_position_embeddings",
                                    "use_l2warp"};

constexpr const char* kTensors[][2] = {{"embeddings.weight", "model.embeddings.weight"},
                                       {"layers.*.ffn.key.weight", "model.layers.*.mlp.up_proj.weight"},
                                       {"layers.*.ffn.value.weight", "model.layers.*.mlp.down_proj.weight"},
                                       {"layers.*.attn.r_proj.weight", "model.layers.*.attn.q_proj.weight"},
                                       {"layers.*.attn.k_proj.weight", "model.layers.*.attn.k_proj.weight"},
                                       {"layers.*.attn.v_proj.weight", "model.layers.*.attn.v_proj.weight"},
                                       {"layers.*.attn.o_proj.weight", "model.layers.*.attn.o_proj.weight"},
                                       {"layers.*.attn.w_lora.lora.0.weight", "model.layers.*.attn.g_proj.0.weight"},
                                       {"layers.*.attn.w_lora.lora.2.weight", "model.layers.*.attn.g_proj.1.weight"},
                                       {"layers.*.attn.w_lora.lora.2.bias", "model.layers.*.attn.g_proj.1.bias"},
                                       {"layers.*.attn.a_lora.lora.0.weight", "model.layers.*.attn.b_proj.0.weight"},
                                       {"layers.*.attn.a_lora.lora.2.weight", "model.layers.*.attn.b_proj.1.weight"},
                                       {"layers.*.attn.a_lora.lora.2.bias", "model.layers.*.attn.b_proj.1.bias"},
                                       {"layers.*.attn.v_lora.lora.0.weight", "model.layers.*.attn.v_gate_proj.0.weight"},
                                       {"layers.*.attn.v_lora.lora.2.weight", "model.layers.*.attn.v_gate_proj.1.weight"},
                                       {"layers.*.attn.v_lora.lora.2.bias", "model.layers.*.attn.v_gate_proj.1.bias"},
                                       {"layers.*.attn.g_lora.lora.0.weight", "model.layers.*.attn.o_gate_proj.0.weight"},
                                       {"layers.*.attn.g_lora.lora.2.weight", "model.layers.*.attn.o_gate_proj.1.weight"},
                                       {"layers.*.attn.g_norm.weight", "model.layers.*.attn.o_norm.weight"},
                                       {"layers.*.attn.g_norm.bias", "model.layers.*.attn.o_norm.bias"},
                                       {"layers.*.attn.k_k", "model.layers.*.attn.k_removal"},
                                       {"layers.*.attn.k_a", "model.layers.*.attn.k_blend"},
                                       {"layers.*.attn.r_k", "model.layers.*.attn.skip"}};

// Of [1, 1, hidden_size] or [hidden_size]; in older checkpoints the first six are the rows of kOlderShifts, [6, hidden_size].
constexpr const char* kOlderShifts = "layers.*.attn.x_x";
constexpr uint32_t kOlderShiftRows = 6;
constexpr const char* kShifts[][2] = {{"attn.x_r", "attn.q_shift"}, {"attn.x_w", "attn.g_shift"}, {"attn.x_k", "attn.k_shift"},
                                      {"attn.x_v", "attn.v_shift"}, {"attn.x_a", "attn.b_shift"}, {"attn.x_g", "attn.o_gate_shift"},
                                      {"ffn.x_k", "mlp.shift"}};

constexpr const char* kNorms[][2] = {{"layers.0.pre_norm", "model.embedding_norm"},
                                     {"layers.*.attn_norm", "model.layers.*.attn_norm"},
                                     {"layers.*.ffn_norm", "model.layers.*.mlp_norm"},
                                     {"norm", "model.norm"}};

// Errors: values of another width, with which fla's own code fails.
void CheckValues(Fields* fields, uint32_t hidden) {
  const Json* values = fields->Find("value_dim");
  if (values == nullptr) return;
  const Json list = values->is_array() ? *values : Json::array({*values});
  if (std::all_of(list.begin(), list.end(), [&](const Json& value) { return value == hidden; })) return;
  fields->FailAt("value_dim", ValueText(*values) + " is not supported, expected hidden_size = " + std::to_string(hidden));
}

// num_heads counts where head_dim is null.
uint32_t ReadHeadDim(ForeignConfig* config, uint32_t hidden) {
  Fields& fields = config->fields();
  const uint32_t given = fields.Size("num_heads", 1, kMaxHeads);
  const uint32_t width = fields.Size("head_dim", config->IsNull("head_dim") ? std::max(hidden / given, 1u) : 64, kMaxHeads);
  if (hidden % width != 0) {
    fields.FailAt("head_dim", std::to_string(width) + " does not divide hidden_size = " + std::to_string(hidden));
  }
  return width;
}

uint32_t ReadInner(ForeignConfig* config, uint32_t hidden) {
  constexpr uint64_t kStep = 32;
  const double ratio = std::min(config->fields().PositiveNumber("hidden_ratio", 4.0f), 1024.0f);
  const uint64_t inner = (static_cast<uint64_t>(hidden * ratio) + kStep - 1) / kStep * kStep;
  return config->fields().Size("intermediate_size", static_cast<uint32_t>(std::min<uint64_t>(inner, Fields::kMaxSize)));
}

// Where it is null, fla computes it: to the nearest multiple of 32, as Python rounds.
uint32_t ReadRank(ForeignConfig* config, const char* key, double columns, uint32_t fallback) {
  constexpr double kStep = 32;
  if (config->IsNull(key)) fallback = static_cast<uint32_t>(std::max(std::nearbyint(columns / kStep), 1.0) * kStep);
  return config->fields().Size(key, fallback);
}

Json ReadAttention(ForeignConfig* config, double heads_root) {
  // What stands under the root depends on who computes the norm.
  const bool fused = config->fields().Bool("fuse_norm", true);
  return {{"system", "rwkv7"},
          {"removal_norm", fused ? "inside" : "outside"},
          {"removal_norm_eps", fused ? 1e-6 : 1e-12},
          {"gate_low_rank", true},
          {"gate_rank", ReadRank(config, "decay_low_rank_dim", 2.5 * heads_root, 64)},
          {"gate_hidden_act", "tanh"},
          {"gate_bias", true},
          {"beta_low_rank", true},
          {"beta_rank", ReadRank(config, "a_low_rank_dim", 2.5 * heads_root, 64)},
          {"beta_bias", true}};
}

void AddRules(bool norm_bias, uint32_t hidden, uint32_t layers, std::vector<TensorRule>* rules) {
  for (const auto& [from, to] : kTensors) rules->push_back({from, to});
  for (const auto& [from, to] : kShifts) {
    rules->push_back({std::string("layers.*.") + from, std::string("model.layers.*.") + to});
    rules->back().flat = true;
  }
  for (uint32_t i = 0; i < kOlderShiftRows; ++i) {
    TensorRule row{kOlderShifts, std::string("model.layers.*.") + kShifts[i][1]};
    row.first_row = i;
    row.rows = 1;
    row.all_rows = kOlderShiftRows;
    row.flat = true;
    rules->push_back(row);
  }
  for (const auto& [from, to] : kNorms) {
    rules->push_back({std::string(from) + ".weight", std::string(to) + ".weight"});
    TensorRule bias{std::string(from) + ".bias", std::string(to) + ".bias"};
    if (!norm_bias) {
      bias.from = "";
      bias.zeros = {hidden};
      bias.layers = bias.to.find('*') == std::string::npos ? 1 : layers;
    }
    rules->push_back(bias);
  }
}

}  // namespace

Translation TranslateRwkv7(ForeignConfig* config, const FamilyOptions&) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : kIgnored) fields.Find(key);
  if (fields.Has("attn")) fields.FailAt("attn", "layers with softmax attention are not supported in rwkv7, expected null");
  config->Require("hidden_act", "sqrelu");
  const uint32_t vocab = fields.Size("vocab_size", 32000), hidden = fields.Size("hidden_size", 2048);
  const uint32_t layers = fields.Size("num_hidden_layers", 24, kMostLayers);
  const uint32_t width = ReadHeadDim(config, hidden);
  CheckValues(&fields, hidden);
  const double root = std::sqrt(static_cast<double>(hidden)), heads_root = root * (width / 64.0);
  const float eps = fields.PositiveNumber("norm_eps", 1e-5f);
  const bool norm_first = fields.Bool("norm_first", true);
  translation.prefix = "model.";
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", hidden},
                        {"num_layers", layers},
                        {"num_heads", hidden / width},
                        {"head_dim", width},
                        {"intermediate_size", ReadInner(config, hidden)},
                        {"hidden_act", "relu_squared"},
                        {"norm", "layernorm"},
                        {"norm_eps", eps},
                        {"embedding_norm", norm_first},
                        {"token_shift", true},
                        {"value_residual", true},
                        {"value_residual_low_rank", true},
                        {"value_residual_rank", ReadRank(config, "v_low_rank_dim", 1.7 * heads_root, 16)},
                        {"output_norm", "groups"},
                        {"output_norm_eps", static_cast<float>(width) * eps},
                        {"output_skip", "products"},
                        {"output_gate", "linear"},
                        {"output_gate_low_rank", true},
                        {"output_gate_rank", ReadRank(config, "gate_low_rank_dim", 5 * root, 128)},
                        {"output_gate_hidden_act", "sigmoid"},
                        {"attention", ReadAttention(config, heads_root)},
                        {"tie_word_embeddings", fields.Bool("tie_word_embeddings", false)}};
  config->EndTokens(vocab, &translation.config);
  AddRules(fields.Bool("norm_bias", true), hidden, layers, &translation.rules);
  if (!norm_first) {  // zeros of a norm that is not there
    auto& rules = translation.rules;
    rules.erase(
        std::remove_if(rules.begin(), rules.end(), [](const TensorRule& rule) { return rule.to == "model.embedding_norm.bias"; }),
        rules.end());
  }
  return translation;
}

}  // namespace tarn::convert
