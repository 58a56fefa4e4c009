#include "tools/convert/families/decoder.h"

#include <cmath>
#include <vector>

namespace tarn::convert {
namespace {

constexpr const char* kLlamaTensors[][2] = {
    {"embed_tokens.weight", "model.embeddings.weight"},
    {"layers.*.input_layernorm.weight", "model.layers.*.attn_norm.weight"},
    {"layers.*.post_attention_layernorm.weight", "model.layers.*.mlp_norm.weight"},
    {"norm.weight", "model.norm.weight"},
    {"layers.*.self_attn.rotary_emb.inv_freq", ""},  // of older versions; it follows from rope_theta
};

Json Scaled(Json attention, const Translation& translation) {
  if (translation.scale) attention["scale"] = *translation.scale;
  return attention;
}

}  // namespace

Json FullAttention(uint32_t max_positions, const FamilyOptions& options, Translation* translation) {
  translation->has_full_attention = true;
  if (!options.window) {
    translation->bounded_by_model = !options.max_context;
    return Scaled({{"system", "softmax"}, {"max_context", options.max_context.value_or(max_positions)}}, *translation);
  }
  if (options.sinks == 0) return WindowAttention(*options.window, *translation);
  Json first = Json::array();
  for (uint32_t i = 0; i < options.sinks; ++i) first.push_back(i);
  return Scaled({{"system", "l2g_window"}, {"window", *options.window}, {"global_positions", first}}, *translation);
}

Json WindowAttention(uint32_t window, const Translation& translation) {
  return Scaled({{"system", "sliding_window"}, {"window", window}}, translation);
}

void AddBoth(const std::string& from, const std::string& to, std::vector<TensorRule>* rules, bool transposed) {
  rules->push_back({from + ".weight", to + ".weight", transposed});
  rules->push_back({from + ".bias", to + ".bias"});
}

void AddZeroBiases(const char* projections, uint32_t width, uint32_t layers, std::vector<TensorRule>* rules) {
  for (const char* p = projections; *p != '\0'; ++p) {
    TensorRule rule{"", std::string("model.layers.*.attn.") + *p + "_proj.bias"};
    rule.zeros = {width};
    rule.layers = layers;
    rules->push_back(rule);
  }
}

void AddProjections(std::vector<TensorRule>* rules) {
  for (const char* projection : {"q_proj", "k_proj", "v_proj"}) {
    AddBoth(std::string("layers.*.self_attn.") + projection, std::string("model.layers.*.attn.") + projection, rules);
  }
  for (const char* projection : {"gate_proj", "up_proj"}) {
    AddBoth(std::string("layers.*.mlp.") + projection, std::string("model.layers.*.mlp.") + projection, rules);
  }
}

uint32_t ReadLlama(ForeignConfig* config, const LlamaDefaults& defaults, Translation* translation) {
  Fields& fields = config->fields();
  const uint32_t hidden = fields.Size("hidden_size"), heads = fields.Size("num_attention_heads");
  const uint32_t vocab = fields.Size("vocab_size");
  const bool own_kv_heads = defaults.kv_heads != 0 && !config->IsNull("num_key_value_heads");
  const uint32_t kv_heads = own_kv_heads ? defaults.kv_heads : heads;
  translation->prefix = "model.";
  translation->config = {{"vocab_size", vocab},
                         {"hidden_size", hidden},
                         {"num_layers", fields.Size("num_hidden_layers", std::nullopt, kMostLayers)},
                         {"num_heads", heads},
                         {"num_kv_heads", fields.Size("num_key_value_heads", kv_heads)},
                         {"intermediate_size", fields.Size("intermediate_size")},
                         {"hidden_act", config->Activation("hidden_act", "silu", /*gated=*/true)},
                         {"norm", "rmsnorm"},
                         {"norm_eps", fields.PositiveNumber("rms_norm_eps", defaults.norm_eps)},
                         {"tie_word_embeddings", fields.Bool("tie_word_embeddings", false)}};
  if (fields.Has("head_dim")) translation->config["head_dim"] = fields.Size("head_dim");
  const uint32_t head_dim = fields.Size("head_dim", hidden / heads),
                 positions = fields.Size("max_position_embeddings", defaults.max_positions);
  const double turned = config->Rope(head_dim, positions, &translation->config);
  // Cosines and sines are multiplied by a factor: the product of q and k by its square.
  if (turned != 1) translation->scale = turned * turned / std::sqrt(static_cast<double>(head_dim));
  config->EndTokens(vocab, &translation->config);

  std::vector<TensorRule>& rules = translation->rules;
  for (const auto& [from, to] : kLlamaTensors) rules.push_back({from, to});
  AddBoth("layers.*.self_attn.o_proj", "model.layers.*.attn.o_proj", &rules);
  AddBoth("layers.*.mlp.down_proj", "model.layers.*.mlp.down_proj", &rules);
  return positions;
}

GptSizes ReadGpt(ForeignConfig* config, const GptFields& names, Translation* translation) {
  Fields& fields = config->fields();
  const GptSizes sizes = {fields.Size(names.hidden, names.default_hidden),
                          fields.Size(names.layers, names.default_layers, kMostLayers),
                          fields.Size(names.heads, names.default_heads), fields.Size(names.positions, names.default_positions)};
  const uint32_t vocab = fields.Size("vocab_size", 50257);
  translation->prefix = "transformer.";
  translation->gpt2_tokenizer = true;
  translation->config = {{"vocab_size", vocab},
                         {"hidden_size", sizes.hidden},
                         {"num_layers", sizes.layers},
                         {"num_heads", sizes.heads},
                         {"intermediate_size", fields.Size(names.inner, 4 * sizes.hidden)},
                         {"hidden_act", config->Activation("activation_function", "gelu_new", /*gated=*/false)},
                         {"norm", "layernorm"},
                         {"norm_eps", fields.PositiveNumber("layer_norm_epsilon", 1e-5f)},
                         {"attention_bias", true},
                         {"mlp_bias", true},
                         {"position_embedding", "learned"},
                         {"max_positions", sizes.positions},
                         {"tie_word_embeddings", fields.Bool("tie_word_embeddings", true)}};
  config->EndTokens(vocab, &translation->config);
  translation->rules = {{"wte.weight", "model.embeddings.weight"}, {"wpe.weight", "model.position_embeddings.weight"}};
  AddBoth("ln_f", "model.norm", &translation->rules);
  AddBoth("h.*.ln_1", "model.layers.*.attn_norm", &translation->rules);
  AddBoth("h.*.ln_2", "model.layers.*.mlp_norm", &translation->rules);
  return sizes;
}

}  // namespace tarn::convert
