// kda: Kimi Delta Attention, the delta rule with a decay of each channel of k. Its output gate is called g_proj, its decay f_proj.
#include <string>
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {

Translation TranslateKda(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadGatedDelta(config, {16, 128, 0}, 1, 24, &translation);
  Json& ours = translation.config;
  const auto key_heads = ours["num_key_heads"].get<uint32_t>();
  if (key_heads != heads.heads) {  // fla reads their decays from behind A_log and dt_bias
    fields.FailAt("num_v_heads", std::to_string(heads.heads) + " is not supported, expected num_heads = " +
                                     std::to_string(key_heads) + ": only heads of k have decays");
  }
  config->Require("safe_gate", false);
  config->Require("lower_bound", nullptr);  // of the logarithms of decays
  SetHeadNorm("o_norm.weight", ours["norm_eps"], /*gate=*/false, &translation);
  ours["output_gate"] = "sigmoid";
  ours["output_gate_low_rank"] = ours["output_gate_bias"] = true;
  ours["output_gate_rank"] = heads.value_dim;
  const double beta_scale = fields.Bool("allow_neg_eigval", false) ? 2 : 1;
  ours["attention"] = {{"system", "gated_deltanet"},   {"gate", "softplus_vector"}, {"gate_low_rank", true},
                       {"gate_rank", heads.value_dim}, {"gate_bias", true},         {"beta_scale", beta_scale}};
  for (const std::string part : {"0.weight", "1.weight"}) {
    AddAttnRule("f_proj." + part, "g_proj." + part, &translation);
    AddAttnRule("g_proj." + part, "o_gate_proj." + part, &translation);
  }
  AddAttnRule("g_proj.1.bias", "o_gate_proj.1.bias", &translation);
  AddAttnRule("dt_bias", "g_proj.1.bias", &translation);
  for (const char* name : {"A_log", "b_proj.weight"}) AddAttnRule(name, name, &translation);
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
