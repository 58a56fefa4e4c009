// gated_deltanet: the delta rule with a decay of each head. Its output gate is called g_proj, its decay a_proj.
#include <string>
#include <utility>

#include "tools/convert/families/fla.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// By our name.
std::string OutputGate(Fields* fields) {
  const std::string gate = fields->Text("output_gate_activation", std::string("swish"));
  if (gate == "swish" || gate == "silu") return "silu";
  if (gate == "sigmoid") return gate;
  fields->FailAt("output_gate_activation", ValueText(gate) + " is not supported, expected \"swish\", \"silu\" or \"sigmoid\"");
}

}  // namespace

Translation TranslateGatedDeltaNet(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  ReadGatedDelta(config, {6, 256, 0}, 2, 21, &translation);
  const std::string gate = OutputGate(&fields);
  const bool is_gated = fields.Bool("use_gate", true);
  SetHeadNorm("o_norm.weight", translation.config["norm_eps"], is_gated, &translation);
  if (is_gated) translation.config["output_gate"] = gate;
  const double beta_scale = fields.Bool("allow_neg_eigval", false) ? 2 : 1;
  translation.config["attention"] = {{"system", "gated_deltanet"}, {"beta_scale", beta_scale}};
  AddAttnRule("a_proj.weight", "g_proj.weight", &translation);
  AddAttnRule("dt_bias", "g_proj.bias", &translation);
  AddAttnRule("A_log", "A_log", &translation);
  AddAttnRule("b_proj.weight", "b_proj.weight", &translation);
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
