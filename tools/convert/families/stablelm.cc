// stablelm: llama with layer norms, where a part of a head turns.
#include "tools/convert/families/decoder.h"

namespace tarn::convert {

Translation TranslateStableLm(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  LlamaDefaults defaults = {4096, 1e-5f, 32};
  defaults.eps = "layer_norm_eps";
  defaults.turned = 0.25;
  defaults.own_norms = true;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  AddProjections(sizes, &translation.rules);
  config->Require("qk_layernorm", false);
  Json& c = translation.config;
  c["norm"] = "layernorm";
  c["parallel"] = fields.Bool("use_parallel_residual", false);
  std::vector<TensorRule>& rules = translation.rules;
  AddBoth("layers.*.input_layernorm", "model.layers.*.attn_norm", &rules);
  // Parallel parts have one norm.
  AddBoth(c["parallel"] == true ? "layers.*.input_layernorm" : "layers.*.post_attention_layernorm", "model.layers.*.mlp_norm",
          &rules);
  AddBoth("norm", "model.norm", &rules);
  if (fields.Bool("use_qkv_bias", false)) c["attention_bias"] = {"q", "k", "v"};
  c["attention"] = FullAttention(sizes.positions, options, &translation);
  return translation;
}

}  // namespace tarn::convert
