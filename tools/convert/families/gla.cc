// gla: gated linear attention. Its output gate is called g_proj, its forget gate gk_proj.
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {

Translation TranslateGla(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {4, 0.5, 1, 4}, &translation);
  ReadFlaKvHeads(config, heads, &translation);
  ReadShortConv(config, false, /*silu=*/true, &translation);
  for (const char* unread : {"use_gk", "use_gv"}) fields.Find(unread);
  translation.config["qk_activation"] = FlaFunction(config, "feature_map", "none");
  const bool gate = fields.Bool("use_output_gate", true);
  AddAttnRule("g_norm_swish_gate.weight", "o_norm.weight", &translation);
  SetHeadNorm("g_norm.weight", translation.config["norm_eps"], gate, &translation);

  // Neither the rank nor the normalizer is a field: every model has these.
  Json attention = {{"system", "gla"}, {"gate_low_rank", true}, {"gate_rank", 16u}, {"gate_bias", true}, {"gate_normalizer", 16}};
  if (fields.Has("clamp_min")) attention["gate_clamp_min"] = fields.Number("clamp_min");
  for (const char* part : {"0.weight", "1.weight", "1.bias"}) {
    AddAttnRule(std::string("gk_proj.") + part, std::string("g_proj.") + part, &translation);
  }
  translation.config["attention"] = attention;
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
