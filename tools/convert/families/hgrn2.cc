// hgrn2: its forget gate f is also its key, 1 - f, and i what it writes. The norm has the eps 1e-5 whatever norm_eps says.
#include <cmath>
#include <utility>

#include "tools/convert/families/fla.h"
#include "variants/limits.h"

namespace tarn::convert {

Translation TranslateHgrn2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  ReadFlaSkeleton(config, /*hidden_ratio=*/4, 24, &translation);
  Fields& fields = config->fields();
  Json& ours = translation.config;
  const auto hidden = ours["hidden_size"].get<uint32_t>();
  // num_heads counts where expand_ratio is null.
  const uint32_t given = fields.Size("num_heads", 1, kMaxHeads);
  const uint32_t width =
      fields.Size("expand_ratio", config->IsNull("expand_ratio") ? std::max(hidden / given, 1u) : 128, kMaxHeads);
  if (hidden % width != 0) {
    fields.FailAt("expand_ratio", std::to_string(width) + " does not divide hidden_size = " + std::to_string(hidden));
  }
  ours["num_heads"] = hidden / width;
  ours["head_dim"] = width;
  ReadShortConv(config, false, /*silu=*/false, &translation, "qfi");
  ours["q_activation"] = "silu";
  ours["output_norm"] = "full";
  ours["output_norm_eps"] = 1e-5f;
  AddAttnRule("g_norm.weight", "o_norm.weight", &translation);
  AddAttnRule("f_proj.weight", "k_proj.weight", &translation);
  AddAttnRule("i_proj.weight", "v_proj.weight", &translation);
  translation.rules.push_back({"lower_bounds", "model.lower_bounds"});
  ours["attention"] = {{"system", "hgrn2"}, {"lower_bounds", fields.Bool("use_lower_bound", true)}};
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
