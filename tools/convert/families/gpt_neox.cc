// gpt_neox, phi and gptj: layer norms, an MLP of two matrices, parallel parts, and a part of a head that turns.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

// Names and defaults of what they have in common.
struct ParallelKind {
  const char *hidden, *layers, *heads, *inner, *activation, *eps, *positions;
  uint32_t default_positions;
  const char *layer, *attention_norm, *mlp_norm, *final_norm, *up, *down, *output;  // tensors; those of a layer behind `layer`
};

struct ParallelSizes {
  uint32_t hidden, layers, heads, head_dim, positions;
};

ParallelSizes ReadParallel(ForeignConfig* config, const ParallelKind& kind, Translation* translation) {
  Fields& fields = config->fields();
  const uint32_t hidden = fields.Size(kind.hidden), heads = fields.Size(kind.heads), vocab = fields.Size("vocab_size");
  if (hidden % heads != 0) fields.FailAt(kind.heads, std::to_string(heads) + " does not divide " + std::to_string(hidden));
  const ParallelSizes sizes = {hidden, fields.Size(kind.layers, std::nullopt, kMostLayers), heads, hidden / heads,
                               fields.Size(kind.positions, kind.default_positions)};
  translation->config = {{"vocab_size", vocab},
                         {"hidden_size", hidden},
                         {"num_layers", sizes.layers},
                         {"num_heads", heads},
                         {"intermediate_size", fields.Size(kind.inner, 4 * hidden)},
                         {"hidden_act", config->Activation(kind.activation, "gelu_new", /*gated=*/false)},
                         {"norm", "layernorm"},
                         {"norm_eps", fields.PositiveNumber(kind.eps, 1e-5f)},
                         {"parallel", true},
                         {"attention_bias", true},
                         {"mlp_bias", true},
                         {"lm_head_bias", true},
                         {"tie_word_embeddings", fields.Bool("tie_word_embeddings", false)}};
  config->EndTokens(vocab, &translation->config);
  std::vector<TensorRule>& rules = translation->rules;
  const std::string from = kind.layer, to = "model.layers.*.";
  AddBoth(from + kind.attention_norm, to + "attn_norm", &rules);
  AddBoth(from + kind.mlp_norm, to + "mlp_norm", &rules);
  AddBoth(from + kind.up, to + "mlp.up_proj", &rules);
  AddBoth(from + kind.down, to + "mlp.down_proj", &rules);
  AddBoth(from + kind.output, to + "attn.o_proj", &rules);
  AddBoth(kind.final_norm, "model.norm", &rules);
  return sizes;
}

// The table of angles and masks, of older versions.
void DropBuffers(const std::string& attention, std::vector<TensorRule>* rules) {
  for (const char* buffer : {"rotary_emb.inv_freq", "bias", "masked_bias", "embed_positions"})
    rules->push_back({attention + buffer, ""});
}

constexpr ParallelKind kGptNeox = {"hidden_size",       "num_hidden_layers", "num_attention_heads",      "intermediate_size",
                                   "hidden_act",        "layer_norm_eps",    "max_position_embeddings",  2048,
                                   "layers.*.",         "input_layernorm",   "post_attention_layernorm", "final_layer_norm",
                                   "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", "attention.dense"};
constexpr ParallelKind kPhi = {"hidden_size", "num_hidden_layers", "num_attention_heads",     "intermediate_size",
                               "hidden_act",  "layer_norm_eps",    "max_position_embeddings", 2048,
                               "layers.*.",   "input_layernorm",   "input_layernorm",         "final_layernorm",
                               "mlp.fc1",     "mlp.fc2",           "self_attn.dense"};
constexpr ParallelKind kGptJ = {
    "n_embd", "n_layer", "n_head", "n_inner", "activation_function", "layer_norm_epsilon", "n_positions",  2048,
    "h.*.",   "ln_1",    "ln_1",   "ln_f",    "mlp.fc_in",           "mlp.fc_out",         "attn.out_proj"};

}  // namespace

Translation TranslateGptNeox(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  if (!fields.Has("hidden_act")) fields.FailAt("hidden_act", "it is missing");
  const auto [hidden, layers, heads, head_dim, positions] = ReadParallel(config, kGptNeox, &translation);
  translation.prefix = "gpt_neox.";
  Json& c = translation.config;
  std::vector<TensorRule>& rules = translation.rules;
  fields.Find("partial_rotary_factor");  // as rotary_pct
  const RotaryHeads rotary = {head_dim, config->RotaryColumns("rotary_pct", 0.25, head_dim)};
  const float base = fields.PositiveNumber("rotary_emb_base", 10000.0f);
  if (fields.Has("rotary_emb_base")) config->Require("rope_theta", base);
  const double factor = config->Rope(rotary, positions, &c, base);
  if (factor != 1) fields.FailAt("rope_scaling", "only kinds that leave cosines and sines as they are are supported");
  c["parallel"] = fields.Bool("use_parallel_residual", true);
  c["attention_bias"] = fields.Bool("attention_bias", true);
  c["lm_head_bias"] = false;
  DropBuffers("layers.*.attention.", &rules);
  rules.push_back({"embed_in.weight", "model.embeddings.weight"});
  rules.push_back({"embed_out.weight", "lm_head.weight"});
  rules.back().outside_base = true;
  // Rows of q, k and v of a head stand side by side.
  uint32_t first = 0;
  for (const char* projection : {"q", "k", "v"}) {
    const RotaryHeads turned = *projection == 'v' ? RotaryHeads{head_dim, head_dim} : rotary;
    const auto order = RotaryOrder(turned, heads, first, 3 * head_dim);
    AddBoth("layers.*.attention.query_key_value", std::string("model.layers.*.attn.") + projection + "_proj", &rules);
    for (TensorRule* rule : {&rules.back(), &rules.back() - 1}) {
      rule->order = order;
      rule->all_rows = 3 * hidden;
    }
    first += head_dim;
  }
  c["attention"] = FullAttention(positions, options, &translation);
  return translation;
}

Translation TranslatePhi(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const auto [hidden, layers, heads, head_dim, positions] = ReadParallel(config, kPhi, &translation);
  translation.prefix = "model.";
  Json& c = translation.config;
  std::vector<TensorRule>& rules = translation.rules;
  const uint32_t kv_heads = fields.Size("num_key_value_heads", heads);
  if (kv_heads > heads) fields.FailAt("num_key_value_heads", "it is above num_attention_heads = " + std::to_string(heads));
  c["num_kv_heads"] = kv_heads;
  const RotaryHeads rotary = {head_dim, config->RotaryColumns("partial_rotary_factor", 0.5, head_dim)};
  const double factor = config->Rope(rotary, positions, &c);
  if (factor != 1) fields.FailAt("rope_scaling", "only kinds that leave cosines and sines as they are are supported");
  rules.push_back({"embed_tokens.weight", "model.embeddings.weight"});
  DropBuffers("layers.*.self_attn.", &rules);
  AddTurned("layers.*.self_attn.q_proj", "model.layers.*.attn.q_proj", rotary, heads, &rules);
  AddTurned("layers.*.self_attn.k_proj", "model.layers.*.attn.k_proj", rotary, kv_heads, &rules);
  AddBoth("layers.*.self_attn.v_proj", "model.layers.*.attn.v_proj", &rules);
  if (fields.Bool("qk_layernorm", false)) {
    c["qk_norm"] = "head";
    AddTurned("layers.*.self_attn.q_layernorm", "model.layers.*.attn.q_norm", rotary, 1, &rules);
    AddTurned("layers.*.self_attn.k_layernorm", "model.layers.*.attn.k_norm", rotary, 1, &rules);
  }
  c["attention"] = FullAttention(positions, options, &translation);
  return translation;
}

Translation TranslateGptJ(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const auto [hidden, layers, heads, head_dim, positions] = ReadParallel(config, kGptJ, &translation);
  translation.prefix = "transformer.";
  translation.gpt2_tokenizer = true;
  config->Require("scale_attn_weights", true);
  for (const char* key : {"n_ctx", "rotary"}) fields.Find(key);
  const uint32_t turned = fields.Size("rotary_dim", 64);
  if (turned > head_dim || turned % 2 != 0 || head_dim % 2 != 0) {
    fields.FailAt("rotary_dim",
                  std::to_string(turned) + " of heads of " + std::to_string(head_dim) + ", expected two even numbers");
  }
  const RotaryHeads rotary = {head_dim, turned, /*interleaved=*/true};
  config->Rope(rotary, positions, &translation.config);
  std::vector<TensorRule>& rules = translation.rules;
  rules.push_back({"wte.weight", "model.embeddings.weight"});
  DropBuffers("h.*.attn.", &rules);
  AddTurned("h.*.attn.q_proj", "model.layers.*.attn.q_proj", rotary, heads, &rules);
  AddTurned("h.*.attn.k_proj", "model.layers.*.attn.k_proj", rotary, heads, &rules);
  AddBoth("h.*.attn.v_proj", "model.layers.*.attn.v_proj", &rules);
  translation.config["attention_bias"] = false;
  translation.config["attention"] = FullAttention(positions, options, &translation);
  return translation;
}

}  // namespace tarn::convert
