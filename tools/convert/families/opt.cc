// opt and xglm: layer norms, biases everywhere, an MLP of two matrices; opt has learned positions, xglm sinusoids.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kPositionOffset = 2;  // of both: the first position is this row, or this angle

// `base`: before their names.
void AddLayerRules(const std::string& base, std::vector<TensorRule>* rules) {
  rules->push_back({base + "embed_tokens.weight", "model.embeddings.weight"});
  AddBoth(base + "layers.*.self_attn_layer_norm", "model.layers.*.attn_norm", rules);
  AddBoth(base + "layers.*.final_layer_norm", "model.layers.*.mlp_norm", rules);
  for (const auto& [from, to] :
       {std::pair{"q_proj", "q_proj"}, {"k_proj", "k_proj"}, {"v_proj", "v_proj"}, {"out_proj", "o_proj"}}) {
    AddBoth(base + "layers.*.self_attn." + from, std::string("model.layers.*.attn.") + to, rules);
  }
  AddBoth(base + "layers.*.fc1", "model.layers.*.mlp.up_proj", rules);
  AddBoth(base + "layers.*.fc2", "model.layers.*.mlp.down_proj", rules);
}

}  // namespace

Translation TranslateOpt(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  config->Require("enable_bias", true);
  config->Require("layer_norm_elementwise_affine", true);
  config->Require("_remove_final_layer_norm", false);
  const uint32_t hidden = fields.Size("hidden_size", 768), layers = fields.Size("num_hidden_layers", 12, kMostLayers);
  config->Require("word_embed_proj_dim", hidden);
  const uint32_t positions = fields.Size("max_position_embeddings", 2048), vocab = fields.Size("vocab_size", 50272);
  const bool pre_norm = fields.Bool("do_layer_norm_before", true);
  translation.prefix = "model.";
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", hidden},
                        {"num_layers", layers},
                        {"num_heads", fields.Size("num_attention_heads", 12)},
                        {"intermediate_size", fields.Size("ffn_dim", 3072)},
                        {"hidden_act", config->Activation("activation_function", "relu", /*gated=*/false)},
                        {"norm", "layernorm"},
                        {"norm_eps", 1e-5},
                        {"norm_position", pre_norm ? "pre" : "post"},
                        {"final_norm", pre_norm},
                        {"attention_bias", true},
                        {"mlp_bias", true},
                        {"position_embedding", "learned"},
                        {"max_positions", positions},
                        {"tie_word_embeddings", fields.Bool("tie_word_embeddings", true)},
                        {"attention", FullAttention(positions, options, &translation)}};
  config->EndTokens(vocab, &translation.config);
  AddLayerRules("decoder.", &translation.rules);
  translation.rules.push_back({"decoder.embed_positions.weight", "model.position_embeddings.weight", false, kPositionOffset});
  AddBoth("decoder.final_layer_norm", "model.norm", &translation.rules);
  return translation;
}

Translation TranslateXglm(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const uint32_t positions = fields.Size("max_position_embeddings", 2048), vocab = fields.Size("vocab_size", 256008);
  translation.prefix = "model.";
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", fields.Size("d_model", 1024)},
                        {"num_layers", fields.Size("num_layers", 24, kMostLayers)},
                        {"num_heads", fields.Size("attention_heads", 16)},
                        {"intermediate_size", fields.Size("ffn_dim", 4096)},
                        {"hidden_act", config->Activation("activation_function", "gelu", /*gated=*/false)},
                        {"norm", "layernorm"},
                        {"norm_eps", 1e-5},
                        {"attention_bias", true},
                        {"mlp_bias", true},
                        {"position_embedding", "sinusoidal"},
                        {"first_position", kPositionOffset},
                        {"scale_embeddings", fields.Bool("scale_embedding", true)},
                        {"tie_word_embeddings", fields.Bool("tie_word_embeddings", true)},
                        {"attention", FullAttention(positions, options, &translation)}};
  config->EndTokens(vocab, &translation.config);
  AddLayerRules("", &translation.rules);
  translation.rules.push_back({"embed_positions.weights", ""});  // of older versions; they follow from the position
  AddBoth("layer_norm", "model.norm", &translation.rules);
  return translation;
}

}  // namespace tarn::convert
