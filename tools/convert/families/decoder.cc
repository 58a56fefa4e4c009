#include "tools/convert/families/decoder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr const char* kLlamaTensors[][2] = {
    {"embed_tokens.weight", "model.embeddings.weight"},
    {"layers.*.self_attn.rotary_emb.inv_freq", ""},  // of older versions; it follows from rope_theta
};

constexpr const char* kLlamaNorms[][2] = {
    {"layers.*.input_layernorm.weight", "model.layers.*.attn_norm.weight"},
    {"layers.*.post_attention_layernorm.weight", "model.layers.*.mlp_norm.weight"},
    {"norm.weight", "model.norm.weight"},
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

std::shared_ptr<const std::vector<uint32_t>> RotaryOrder(const RotaryHeads& rotary, uint32_t heads, uint32_t first,
                                                         uint32_t stride) {
  const uint32_t d = rotary.head_dim, half = d / 2, pairs = rotary.turned / 2;
  if (stride == 0 && pairs == half && !rotary.interleaved) return nullptr;
  auto order = std::make_shared<std::vector<uint32_t>>();
  order->reserve(size_t{heads} * d);
  for (uint32_t head = 0; head < heads; ++head) {
    const uint32_t begin = first + head * (stride == 0 ? d : stride);
    for (uint32_t row = 0; row < d; ++row) {
      const uint32_t side = row / half, pair = row % half;  // side 1: the second of a pair
      uint32_t from = rotary.interleaved ? 2 * pair + side : pair + side * pairs;
      if (pair >= pairs) from = 2 * pairs + side * (half - pairs) + pair - pairs;
      order->push_back(begin + from);
    }
  }
  return order;
}

void AddTurned(const std::string& from, const std::string& to, const RotaryHeads& rotary, uint32_t heads,
               std::vector<TensorRule>* rules) {
  AddBoth(from, to, rules);
  const auto order = RotaryOrder(rotary, heads);
  if (order == nullptr) return;
  for (TensorRule* rule : {&rules->back(), &rules->back() - 1}) {
    rule->order = order;
    rule->all_rows = heads * rotary.head_dim;
  }
}

void Fold(const std::string& to, float scale, float added, std::vector<TensorRule>* rules) {
  for (TensorRule& rule : *rules) {
    if (rule.to.size() < to.size() || rule.to.compare(rule.to.size() - to.size(), to.size(), to) != 0) continue;
    rule.scale = scale;
    rule.added = added;
  }
}

std::vector<bool> WindowedLayers(Fields* fields, uint32_t layers, bool has_window,
                                 const std::function<bool(uint32_t layer)>& by_number) {
  std::vector<bool> windowed;
  const Json* types = fields->Find("layer_types");
  if (types == nullptr) {
    for (uint32_t i = 0; i < layers; ++i) windowed.push_back(by_number(i));
    return windowed;
  }
  if (!types->is_array() || types->size() != layers) {
    fields->FailAt("layer_types", ValueText(*types) + " is not a list of num_hidden_layers = " + std::to_string(layers) + " types");
  }
  for (const Json& type : *types) {
    if (type != "full_attention" && type != "sliding_attention") {
      fields->FailAt("layer_types", ValueText(type) + " is not supported, expected \"full_attention\" or \"sliding_attention\"");
    }
    if (type == "sliding_attention" && !has_window)
      fields->FailAt("layer_types", "a layer has a window, but use_sliding_window or sliding_window says that there is none");
    windowed.push_back(type == "sliding_attention");
  }
  return windowed;
}

Json AttentionOfLayers(const std::vector<bool>& windowed, uint32_t window, uint32_t positions, const FamilyOptions& options,
                       Translation* translation) {
  Json attention = Json::array();
  for (const bool has_window : windowed) {
    attention.push_back(has_window ? WindowAttention(window, *translation) : FullAttention(positions, options, translation));
  }
  return attention;
}

void AddProjections(const LlamaSizes& sizes, std::vector<TensorRule>* rules) {
  AddTurned("layers.*.self_attn.q_proj", "model.layers.*.attn.q_proj", sizes.rotary, sizes.heads, rules);
  AddTurned("layers.*.self_attn.k_proj", "model.layers.*.attn.k_proj", sizes.rotary, sizes.kv_heads, rules);
  AddBoth("layers.*.self_attn.v_proj", "model.layers.*.attn.v_proj", rules);
  for (const char* projection : {"gate_proj", "up_proj"}) {
    AddBoth(std::string("layers.*.mlp.") + projection, std::string("model.layers.*.mlp.") + projection, rules);
  }
}

void AddQkNorms(std::vector<TensorRule>* rules) {
  for (const std::string norm : {"q_norm", "k_norm"}) {
    rules->push_back({"layers.*.self_attn." + norm + ".weight", "model.layers.*.attn." + norm + ".weight"});
  }
}

LlamaSizes ReadLlama(ForeignConfig* config, const LlamaDefaults& defaults, Translation* translation) {
  Fields& fields = config->fields();
  const uint32_t hidden = fields.Size("hidden_size"), heads = fields.Size("num_attention_heads");
  const uint32_t vocab = fields.Size("vocab_size");
  const bool own_kv_heads = defaults.kv_heads != 0 && !config->IsNull("num_key_value_heads");
  const uint32_t kv_heads = own_kv_heads ? defaults.kv_heads : heads;
  translation->prefix = "model.";
  translation->config = {
      {"vocab_size", vocab},
      {"hidden_size", hidden},
      {"num_layers", fields.Size("num_hidden_layers", std::nullopt, kMostLayers)},
      {"num_heads", heads},
      {"num_kv_heads", fields.Size("num_key_value_heads", kv_heads)},
      {"intermediate_size", fields.Size(defaults.inner)},
      {"hidden_act", config->Activation(defaults.activation, defaults.activation_default, /*gated=*/true)},
      {"norm", "rmsnorm"},
      {"norm_eps", defaults.eps == nullptr ? defaults.norm_eps : fields.PositiveNumber(defaults.eps, defaults.norm_eps)},
      {"tie_word_embeddings", fields.Bool("tie_word_embeddings", defaults.tied)}};
  const uint32_t head_dim = fields.Size("head_dim", defaults.head_dim != 0 ? defaults.head_dim : std::max(hidden / heads, 1u)),
                 positions = fields.Size("max_position_embeddings", defaults.max_positions);
  if (uint64_t{heads} * head_dim > Fields::kMaxSize) {
    fields.FailAt("num_attention_heads", std::to_string(heads) + " heads of " + std::to_string(head_dim) + " are too large");
  }
  if (fields.Has("head_dim") || defaults.head_dim != 0) translation->config["head_dim"] = head_dim;
  LlamaSizes sizes{positions, heads, translation->config["num_kv_heads"], {head_dim, head_dim}};
  if (sizes.kv_heads > heads) fields.FailAt("num_key_value_heads", "it is above num_attention_heads = " + std::to_string(heads));
  if (defaults.turned < 1) sizes.rotary.turned = config->RotaryColumns("partial_rotary_factor", defaults.turned, head_dim);
  const double factor = defaults.rope ? config->Rope(sizes.rotary, positions, &translation->config, defaults.theta) : 1;
  // Cosines and sines are multiplied by a factor: the product of q and k by its square.
  if (factor != 1) translation->scale = factor * factor / std::sqrt(static_cast<double>(head_dim));
  config->EndTokens(vocab, &translation->config);

  std::vector<TensorRule>& rules = translation->rules;
  for (const auto& [from, to] : kLlamaTensors) rules.push_back({from, to});
  for (const auto& [from, to] : kLlamaNorms) {
    if (!defaults.own_norms) rules.push_back({from, to});
  }
  AddBoth("layers.*.self_attn.o_proj", "model.layers.*.attn.o_proj", &rules);
  AddBoth("layers.*.mlp.down_proj", "model.layers.*.mlp.down_proj", &rules);
  return sizes;
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
