// olmo and olmo2: llama; olmo has layer norms without weights, olmo2 norms behind each part, and of q and k over all heads.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

// A norm that has neither weight nor bias.
void AddPlainNorm(const std::string& to, uint32_t width, uint32_t layers, std::vector<TensorRule>* rules) {
  for (const auto& [name, value] : {std::pair{".weight", 1.0f}, {".bias", 0.0f}}) {
    TensorRule rule{"", to + name};
    rule.zeros = {width};
    rule.added = value;
    rule.layers = layers;
    rules->push_back(rule);
  }
}

}  // namespace

Translation TranslateOlmo(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  LlamaDefaults defaults = {2048, 1e-5f, 0};
  defaults.eps = nullptr;
  defaults.own_norms = true;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  AddProjections(sizes, &translation.rules);
  Json& c = translation.config;
  config->Require("clip_qkv", nullptr);
  c["norm"] = "layernorm";
  c["attention_bias"] = config->fields().Bool("attention_bias", false);
  c["attention"] = FullAttention(sizes.positions, options, &translation);
  for (const char* norm : {"model.layers.*.attn_norm", "model.layers.*.mlp_norm", "model.norm"}) {
    AddPlainNorm(norm, c["hidden_size"], c["num_layers"], &translation.rules);
  }
  return translation;
}

Translation TranslateOlmo2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  translation.rules = {{"norm.weight", "model.norm.weight"},
                       {"layers.*.post_attention_layernorm.weight", "model.layers.*.attn_norm.weight"},
                       {"layers.*.post_feedforward_layernorm.weight", "model.layers.*.mlp_norm.weight"}};
  LlamaDefaults defaults = {2048, 1e-5f, 0};
  defaults.own_norms = true;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  AddProjections(sizes, &translation.rules);
  AddQkNorms(&translation.rules);
  Json& c = translation.config;
  c["norm_position"] = "output";
  c["qk_norm"] = "full";
  c["attention_bias"] = config->fields().Bool("attention_bias", false);
  c["attention"] = FullAttention(sizes.positions, options, &translation);
  return translation;
}

}  // namespace tarn::convert
