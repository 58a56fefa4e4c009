// abc: attention with bounded-memory control.
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {

Translation TranslateAbc(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {4, 0.5, 1, 4}, &translation);
  ReadShortConv(config, false, /*silu=*/true, &translation);
  fields.Find("gate_low_rank_dim");  // of no projection
  Json& ours = translation.config;
  if (fields.Bool("use_rope", true)) {
    if (heads.key_dim % 2 != 0)
      fields.FailAt("num_heads", "a head of " + std::to_string(heads.key_dim) + " is odd: rope turns pairs");
    ours["position_embedding"] = "rope";
  }
  SetHeadNorm("g_norm.weight", ours["norm_eps"], /*gate=*/true, &translation);
  AddAttnRule("s_proj.weight", "control_proj.weight", &translation);
  for (const char* bound : {"clamp_min", "clamp_max"}) {
    if (config->IsNull(bound)) fields.FailAt(bound, "null is not supported, expected a number");
  }
  const float least = fields.Number("clamp_min", -32.0f), most = fields.Number("clamp_max", 32.0f);
  ours["attention"] = {{"system", "abc_mlp"},
                       {"num_slots", fields.Size("num_slots", config->IsNull("num_slots") ? heads.key_dim : 64)},
                       {"logit_clamp", {least, most}}};
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
