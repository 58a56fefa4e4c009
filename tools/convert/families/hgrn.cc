// hgrn: every column is a recurrence h <- f h + (1 - f) silu(i), with a least f for each layer and column, and a norm and a gate
// behind it.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "tools/convert/families/fla.h"
#include "tools/convert/json/error.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// The columns of the recurrence. Like the library, through a whole number.
uint32_t InnerWidth(ForeignConfig* config, uint32_t hidden, bool lower_bounds) {
  Fields& fields = config->fields();
  if (config->IsNull("expand_ratio")) fields.FailAt("expand_ratio", "null is not supported, expected a number above 0");
  fields.PositiveNumber("expand_ratio", 1.0f);
  const Json* given = fields.Find("expand_ratio");
  const double ratio = given == nullptr ? 1.0 : given->get<double>(), width = std::trunc(ratio * hidden);
  if (!(width >= 1 && width <= kMaxHeads)) {
    fields.FailAt("expand_ratio", ValueText(Json(ratio)) + " times hidden_size = " + std::to_string(hidden) + " is not in 1 .. " +
                                      std::to_string(kMaxHeads) + ", the most columns of a recurrence");
  }
  const auto columns = static_cast<uint32_t>(width);
  if (lower_bounds && columns != hidden) {
    fields.FailAt("expand_ratio", ValueText(Json(ratio)) +
                                      " is not supported with use_lower_bound, whose bounds are for hidden_size = " +
                                      std::to_string(hidden) + " columns");
  }
  return columns;
}

}  // namespace

Translation TranslateHgrn(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  for (const auto& [from, to] : {std::pair{"i_proj", "v_proj"}, {"f_proj", "g_proj"}, {"g_proj", "o_gate_proj"}}) {
    AddAttnRule(from + std::string(".weight"), to + std::string(".weight"), &translation);
  }
  AddAttnRule("g_norm.weight", "o_norm.weight", &translation);
  translation.rules.push_back({"lower_bounds", "model.lower_bounds"});
  ReadFlaSkeleton(config, /*hidden_ratio=*/4, 24, &translation);
  Fields& fields = config->fields();
  Json& ours = translation.config;
  const bool lower_bounds = fields.Bool("use_lower_bound", true);
  ours["num_heads"] = 1u;
  ours["head_dim"] = InnerWidth(config, ours["hidden_size"], lower_bounds);
  if (ReadShortConv(config, false, /*silu=*/false, &translation, "if", "vg")) ours["conv_logits"] = true;
  ours["v_activation"] = "silu";
  ours["output_norm"] = "full";
  ours["output_norm_eps"] = ours["norm_eps"];
  ours["output_gate"] = "silu";
  ours["attention"] = {{"system", "diagonal_recurrence"}, {"lower_bounds", lower_bounds}};
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
