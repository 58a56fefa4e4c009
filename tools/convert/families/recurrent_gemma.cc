// recurrent_gemma (Griffin): a convolution and a recurrence with gates (RG-LRU), and in every third layer softmax attention over a
// window. Norms are by 1 + weight, and embeddings times the root of their width, rounded to bfloat16.
#include <cmath>
#include <cstring>

#include "tools/convert/families/hybrid.h"
#include "tools/convert/json/error.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

constexpr const char* kTensors[][2] = {{"layers.*.temporal_pre_norm.weight", "model.layers.*.attn_norm.weight"},
                                       {"layers.*.channel_pre_norm.weight", "model.layers.*.mlp_norm.weight"},
                                       {"final_norm.weight", "model.norm.weight"}};

constexpr char kFrom[] = "layers.*.temporal_block.", kTo[] = "model.layers.*.attn.";

std::vector<TensorRule> AttentionRules(const LlamaSizes& sizes) {
  std::vector<TensorRule> rules;
  AddTurned(kFrom + std::string("q_proj"), kTo + std::string("q_proj"), sizes.rotary, sizes.heads, &rules);
  AddTurned(kFrom + std::string("k_proj"), kTo + std::string("k_proj"), sizes.rotary, sizes.kv_heads, &rules);
  for (const std::string part : {"v_proj", "o_proj"}) AddBoth(kFrom + part, kTo + part, &rules);
  return rules;
}

std::vector<TensorRule> RecurrentRules() {
  std::vector<TensorRule> rules;
  for (const auto& [from, to] :
       {std::pair{"linear_x", "v_proj"}, {"linear_y", "o_gate_proj"}, {"linear_out", "o_proj"}, {"conv_1d", "v_conv"}}) {
    AddBoth(kFrom + std::string(from), kTo + std::string(to), &rules);
  }
  rules[rules.size() - 2].matrix = true;  // of the convolution
  for (const auto& [from, to] : {std::pair{"input_gate", "i_proj"}, {"recurrent_gate", "g_proj"}}) {
    rules.push_back({kFrom + std::string("rg_lru.") + from + "_weight", kTo + std::string(to) + ".weight"});
    rules.push_back({kFrom + std::string("rg_lru.") + from + "_bias", kTo + std::string(to) + ".bias"});
    rules.back().flat = true;
  }
  rules.push_back({kFrom + std::string("rg_lru.recurrent_param"), kTo + std::string("rate_logit")});
  return rules;
}

// To the nearest number of 8 significant bits, the even one of two.
float RoundedToBf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  bits = (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

// Which layers have softmax attention: a list of types, over and over.
std::vector<bool> AttentionLayers(Fields* fields, uint32_t layers) {
  const Json fallback = {"recurrent", "recurrent", "attention"};
  const Json *older = fields->Find("_block_types"), *newer = fields->Find("block_types");
  const Json* given = newer != nullptr ? newer : older;
  const Json& types = given == nullptr ? fallback : *given;
  if (!types.is_array() || types.empty()) fields->FailAt("block_types", ValueText(types) + " is not a list of types");
  for (const Json& type : types) {
    if (type == "recurrent" || type == "attention") continue;
    fields->FailAt("block_types", ValueText(type) + " is not supported, expected \"recurrent\" or \"attention\"");
  }
  std::vector<bool> attention;
  for (uint32_t layer = 0; layer < layers; ++layer) attention.push_back(types[layer % types.size()] == "attention");
  return attention;
}

// What stands around the recurrence.
Json RecurrentBlock(Fields* fields, uint32_t hidden, uint32_t heads, const std::string& activation) {
  const uint32_t width = fields->Size("lru_width", hidden);
  if (width % heads != 0 || width / heads > kMaxHeads) {
    fields->FailAt("lru_width", std::to_string(width) + " is no multiple of num_attention_heads = " + std::to_string(heads) +
                                    ", with heads of at most " + std::to_string(kMaxHeads));
  }
  return {{"num_heads", heads},
          {"num_kv_heads", heads},
          {"head_dim", width / heads},
          {"attention_bias", true},
          {"attention_conv", true},
          {"conv_taps", fields->Integer("conv1d_width", kMinConvTaps, kMaxConvTaps, 4)},
          {"conv_bias", true},
          {"conv_activation", "none"},
          {"output_gate", activation == "geglu_tanh" ? "gelu_tanh"
                          : activation == "geglu"    ? "gelu"
                                                     : "silu"},
          {"output_gate_bias", true}};
}

}  // namespace

Translation TranslateRecurrentGemma(ForeignConfig* config, const FamilyOptions&) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* unread : {"w_init_variance_scale", "final_w_init_variance_scale"}) fields.Find(unread);
  config->Require("partial_rotary_factor", 0.5);
  config->Require("embeddings_scale_by_sqrt_dim", true);
  LlamaDefaults defaults{/*positions=*/1, 1e-6f, 0};
  defaults.tied = true;
  defaults.own_norms = true;
  defaults.activation = "hidden_activation";
  defaults.activation_default = "gelu_pytorch_tanh";
  defaults.turned = 0.5;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  Json& c = translation.config;
  for (const auto& [from, to] : kTensors) translation.rules.push_back({from, to});
  Fold("norm.weight", 1, /*added=*/1, &translation.rules);
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
    AddBoth("layers.*.mlp_block." + part, "model.layers.*.mlp." + part, &translation.rules);
  }
  const auto hidden = c["hidden_size"].get<uint32_t>(), inner = c["intermediate_size"].get<uint32_t>();
  if (inner < 2) fields.FailAt("intermediate_size", "half of it is the width of the MLP, at least 1");
  c["intermediate_size"] = inner / 2;
  c["mlp_bias"] = true;
  c["attention_bias"] = fields.Bool("attention_bias", false) ? Json(true) : Json::array({"o"});
  c["embedding_scale"] = RoundedToBf16(std::sqrt(static_cast<float>(hidden)));
  c["logits_soft_cap"] = fields.PositiveNumber("logits_soft_cap", 30.0f);

  const std::vector<bool> attention = AttentionLayers(&fields, c["num_layers"]);
  // The authors' code sees a token and so many before it.
  const uint32_t window = fields.Size("attention_window_size", 2048, Fields::kMaxSize - 1) + 1;
  SetLayers(
      attention, {{"system", "rg_lru"}}, RecurrentBlock(&fields, hidden, sizes.heads, c["hidden_act"]),
      [&] { return WindowAttention(window, translation); }, &translation);
  AddLayerRules(attention, true, AttentionRules(sizes), &translation.rules);
  AddLayerRules(attention, false, RecurrentRules(), &translation.rules);
  return translation;
}

}  // namespace tarn::convert
