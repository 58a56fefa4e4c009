// transformer: the softmax model of flash-linear-attention. Norms of q and k have the eps 1e-5 whatever norm_eps says.
#include <string>

#include "tools/convert/families/decoder.h"
#include "tools/convert/families/fla.h"
#include "variants/limits.h"

namespace tarn::convert {

Translation TranslateFlaTransformer(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  ReadFlaSkeleton(config, /*hidden_ratio=*/4, 24, &translation);
  Fields& fields = config->fields();
  Json& ours = translation.config;
  const auto hidden = ours["hidden_size"].get<uint32_t>();
  const uint32_t heads = fields.Size("num_heads", 32, kMaxHeads);
  if (hidden % heads != 0) {
    fields.FailAt("num_heads", std::to_string(heads) + " does not divide hidden_size = " + std::to_string(hidden));
  }
  ours["num_heads"] = heads;
  ReadFlaKvHeads(config, {heads, hidden / heads, hidden / heads}, &translation);
  if (config->IsNull("rope_theta")) fields.FailAt("rope_theta", "null is not supported, expected a number");
  ours["position_embedding"] = "rope";
  ours["rope_theta"] = fields.PositiveNumber("rope_theta", 10000.0f);
  for (const std::string part : {"q", "k", "v"}) AddAttnRule(part + "_proj.bias", part + "_proj.bias", &translation);
  if (fields.Bool("qkv_bias", false)) ours["attention_bias"] = {"q", "k", "v"};
  if (fields.Bool("qk_norm", false)) {
    ours["qk_norm"] = "head";
    ours["qk_norm_eps"] = 1e-5f;
    for (const std::string part : {"q", "k"}) AddAttnRule(part + "_norm.weight", part + "_norm.weight", &translation);
  }
  const uint32_t positions = FlaPositions(&fields);
  ours["attention"] = fields.Has("window_size") ? WindowAttention(fields.Size("window_size"), translation)
                                                : FullAttention(positions, options, &translation);
  return translation;
}

}  // namespace tarn::convert
