// gemma, gemma2 and gemma3: llama with embeddings that are multiplied by the root of their width, norms by 1 + weight, and gelu in
// the MLP. gemma2 and gemma3 have norms around each part and windows in some layers; gemma2 caps its logits, gemma3 has norms of
// every head of q and k, and other angles where there is a window. gemma3_text is gemma3 without the part that sees images, which
// is not converted.
#include <cmath>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kWindow = 4096;

LlamaDefaults Defaults(uint32_t positions, uint32_t kv_heads, bool own_norms) {
  LlamaDefaults defaults = {positions, 1e-6f, kv_heads, 256};
  defaults.tied = true;
  defaults.own_norms = own_norms;
  defaults.activation = "hidden_activation";
  defaults.activation_default = "gelu_pytorch_tanh";
  return defaults;
}

// What all have, behind ReadLlama and the rules of all norms.
void Finish(ForeignConfig* config, const LlamaSizes& sizes, Translation* translation) {
  AddProjections(sizes, &translation->rules);
  Json& c = translation->config;
  c["scale_embeddings"] = true;
  c["attention_bias"] = config->fields().Bool("attention_bias", false);
  Fold("norm.weight", 1, /*added=*/1, &translation->rules);
}

// Norms before and behind each part.
std::vector<TensorRule> SandwichNorms() {
  return {{"norm.weight", "model.norm.weight"},
          {"layers.*.input_layernorm.weight", "model.layers.*.attn_norm.weight"},
          {"layers.*.post_attention_layernorm.weight", "model.layers.*.attn_output_norm.weight"},
          {"layers.*.pre_feedforward_layernorm.weight", "model.layers.*.mlp_norm.weight"},
          {"layers.*.post_feedforward_layernorm.weight", "model.layers.*.mlp_output_norm.weight"}};
}

// 0: no cap. null and nothing are not the same.
float Cap(ForeignConfig* config, const char* key, float fallback) {
  const float cap = config->fields().PositiveNumber(key, 1.0f);
  if (config->IsNull(key)) return 0;
  return config->fields().Has(key) ? cap : fallback;
}

void SetAttention(ForeignConfig* config, const std::vector<bool>& windowed, const LlamaSizes& sizes, float cap,
                  const FamilyOptions& options, Translation* translation) {
  Fields& fields = config->fields();
  translation->config["norm_position"] = "both";
  if (translation->scale) fields.FailAt("rope_scaling", "only kinds that leave cosines and sines as they are are supported");
  translation->scale = 1 / std::sqrt(static_cast<double>(fields.PositiveNumber("query_pre_attn_scalar", 256.0f)));
  Json attention = AttentionOfLayers(windowed, fields.Size("sliding_window", kWindow), sizes.positions, options, translation);
  for (Json& layer : attention) {
    if (cap > 0) layer["soft_cap"] = cap;
  }
  translation->config["attention"] = attention;
}

}  // namespace

Translation TranslateGemma(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  config->fields().Find("hidden_activation");  // the library reads hidden_act
  LlamaDefaults defaults = Defaults(8192, 16, /*own_norms=*/false);
  defaults.activation = "hidden_act";
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  Finish(config, sizes, &translation);
  // The published models say "gelu" and mean its tanh form: so transformers 5.24 reads it, and those before 4.48.
  if (translation.config["hidden_act"] == "geglu") translation.config["hidden_act"] = "geglu_tanh";
  translation.config["attention"] = FullAttention(sizes.positions, options, &translation);
  return translation;
}

Translation TranslateGemma2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  translation.rules = SandwichNorms();
  const LlamaSizes sizes = ReadLlama(config, Defaults(8192, 4, /*own_norms=*/true), &translation);
  Finish(config, sizes, &translation);
  for (const char* key : {"cache_implementation", "hidden_act"}) config->fields().Find(key);  // it reads hidden_activation
  translation.config["logits_soft_cap"] = Cap(config, "final_logit_softcapping", 30);
  const std::vector<bool> windowed =
      WindowedLayers(&config->fields(), translation.config["num_layers"], !config->IsNull("sliding_window"),
                     [](uint32_t layer) { return layer % 2 == 0; });
  SetAttention(config, windowed, sizes, Cap(config, "attn_logit_softcapping", 50), options, &translation);
  return translation;
}

Translation TranslateGemma3Text(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  translation.rules = SandwichNorms();
  config->SplitRopeOfKinds("rope_local_base_freq");
  LlamaDefaults defaults = Defaults(131072, 4, /*own_norms=*/true);
  defaults.theta = 1e6f;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  AddQkNorms(&translation.rules);
  Finish(config, sizes, &translation);
  for (const char* key : {"cache_implementation", "hidden_act"}) fields.Find(key);
  Json& c = translation.config;
  c["qk_norm"] = "head";
  c["logits_soft_cap"] = Cap(config, "final_logit_softcapping", 0);
  config->Require("use_bidirectional_attention", false);
  config->Require("attn_logit_softcapping", nullptr);  // the library reads it and does not use it
  const uint32_t every = fields.Size("sliding_window_pattern", fields.Size("_sliding_window_pattern", 6));
  const std::vector<bool> windowed =
      WindowedLayers(&fields, c["num_layers"], true, [every](uint32_t layer) { return (layer + 1) % every != 0; });
  const float local = fields.PositiveNumber("rope_local_base_freq", 10000.0f);
  for (const bool has_window : windowed) c["layer_rope"].push_back(has_window ? Json(local) : Json());
  SetAttention(config, windowed, sizes, /*cap=*/0, options, &translation);
  return translation;
}

Translation TranslateGemma3(ForeignConfig* config, const FamilyOptions& options) {
  Fields& fields = config->fields();
  for (const char* key : {"vision_config", "mm_tokens_per_image", "boi_token_index", "eoi_token_index", "image_token_index"}) {
    fields.Find(key);  // of images
  }
  const Json* given = fields.Find("text_config");
  if (given == nullptr || !given->is_object()) fields.FailAt("text_config", "an object is missing");
  // Published files leave out what is the library's default.
  Json text = {{"vocab_size", 262208u},
               {"hidden_size", 2304u},
               {"intermediate_size", 9216u},
               {"num_hidden_layers", 26u},
               {"num_attention_heads", 8u}};
  for (const char* key : {"bos_token_id", "eos_token_id", "tie_word_embeddings"}) {
    const Json* value = fields.Find(key);
    if (value != nullptr) text[key] = *value;
  }
  for (const auto& [key, value] : given->items()) {
    if (!value.is_null() || !text.contains(key)) text[key] = value;
  }
  ForeignConfig inner(text, fields.where() + ": text_config", config->context());
  Translation translation = TranslateGemma3Text(&inner, options);
  inner.Finish();
  translation.prefix = "language_model.model.";
  TensorRule head{"language_model.lm_head.weight", "lm_head.weight"};
  head.outside_base = true;
  translation.rules.push_back(head);
  for (const char* images : {"vision_tower.", "multi_modal_projector."}) translation.rules.push_back({images, ""});
  return translation;
}

}  // namespace tarn::convert
