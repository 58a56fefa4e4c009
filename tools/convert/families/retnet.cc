// retnet: retention. use_short_conv of its config.json has no effect.
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {

Translation TranslateRetNet(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {8, 1, 2, 2}, &translation);
  if (fields.Size("num_kv_heads", heads.heads) != heads.heads) {
    fields.FailAt("num_kv_heads",
                  "every query head has a decay, and so a state, of its own: expected num_heads = " + std::to_string(heads.heads));
  }
  if (heads.key_dim % 2 != 0)
    fields.FailAt("num_heads", "a head of " + std::to_string(heads.key_dim) + " is odd: rope turns pairs");
  for (const char* unread : {"use_short_conv", "conv_size"}) fields.Find(unread);
  translation.config["qk_activation"] = FlaFunction(config, "feature_map", "none");
  translation.config["position_embedding"] = "rope";
  translation.config["attention"] = {{"system", "retnet"}};
  const bool gate = fields.Bool("use_output_gate", true);
  AddAttnRule("g_norm_swish_gate.weight", "o_norm.weight", &translation);
  SetHeadNorm("g_norm.weight", translation.config["norm_eps"], gate, &translation);
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
