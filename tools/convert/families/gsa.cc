// gsa: gated slot attention. Its norm has the eps 1e-5 whatever norm_eps says, and use_norm and use_output_gate have no effect.
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {

Translation TranslateGsa(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {4, 1, 1, 4}, &translation);
  ReadFlaKvHeads(config, heads, &translation);
  ReadShortConv(config, false, /*silu=*/true, &translation);
  for (const char* unread : {"use_norm", "use_output_gate", "clamp_min", "clamp_max"}) fields.Find(unread);
  Json& ours = translation.config;
  if (heads.heads * heads.value_dim != ours["hidden_size"]) fields.FailAt("expand_v", "only 1 is supported");
  ours["qk_activation"] = FlaFunction(config, "feature_map", "swish");
  ours["v_activation"] = "silu";
  ours["output_activation"] = "silu";
  ours["output_norm"] = "full";
  ours["output_norm_eps"] = 1e-5f;
  AddAttnRule("g_norm.weight", "o_norm.weight", &translation);
  AddAttnRule("f_proj.weight", "g_proj.weight", &translation);
  ours["attention"] = {{"system", "gsa"},
                       {"num_slots", fields.Size("num_slots", config->IsNull("num_slots") ? heads.key_dim : 64)},
                       {"gate_normalizer", fields.PositiveNumber("gate_logit_normalizer", 8.0f)},
                       {"scale", 1}};
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
