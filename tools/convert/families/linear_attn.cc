// linear_attn: linear attention with feature maps that have no weights.
#include <cmath>
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kNu = 4;  // of DPFP

// The map as tarn has it. Errors: maps with weights, which q and k have apart.
Json FeatureMap(Fields* fields) {
  const std::string name = fields->Text("feature_map", std::string("elementwise_product"));
  if (name == "elu") return {{"feature_map", "elu_plus_one"}};
  if (name == "relu" || name == "identity") return {{"feature_map", name}};
  if (name == "dpfp") return {{"feature_map", "dpfp"}, {"nu", kNu}, {"negate_second", true}};
  fields->FailAt("feature_map", ValueText(name) + " is not supported, expected \"elu\", \"relu\", \"identity\" or \"dpfp\"");
}

}  // namespace

Translation TranslateLinearAttn(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {4, 1, 1, 4}, &translation);
  ReadFlaKvHeads(config, heads, &translation);
  SetHeadNorm("norm.weight", translation.config["norm_eps"], /*gate=*/false, &translation);

  Json attention = FeatureMap(&fields);
  attention["system"] = "linear_attention";
  const bool dpfp = attention["feature_map"] == "dpfp";
  fields.Find("tie_feature_map_qk");
  const bool norm_q = fields.Bool("norm_q", false), norm_k = fields.Bool("norm_k", false);
  if (norm_q != norm_k) fields.FailAt("norm_q", "a norm of q alone or k alone is not supported: expected norm_q equal to norm_k");
  if (norm_q && dpfp) fields.FailAt("norm_q", "true is not supported for feature_map \"dpfp\", whose features have both signs");
  if (norm_q) attention.update({{"sum_norm", true}, {"sum_norm_eps", 1e-4f}});
  const double features = dpfp ? 2.0 * kNu * heads.key_dim : heads.key_dim, scale = 1 / std::sqrt(features);
  if (fields.Bool("norm_feature_map", false)) {  // scale q . S / (scale q . z + eps)
    attention.update({{"den_mode", "add"}, {"den_eps", 1e-10 / scale}});
  } else {
    attention["scale"] = scale;
  }
  translation.config["attention"] = attention;
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
