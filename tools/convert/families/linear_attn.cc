// linear_attn: linear attention with feature maps whose weights, if they have any, serve all heads.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/convert/families/fla.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kNu = 4;  // of DPFP

// The map as tarn has it. Errors: one that it has not.
Json FeatureMap(Fields* fields, uint32_t key_dim) {
  const std::string name = fields->Text("feature_map", std::string("elementwise_product"));
  const bool tied = fields->Bool("tie_feature_map_qk", false);
  if (name == "elementwise_product") return {{"feature_map", "product"}, {"num_features", key_dim}, {"own_q_map", !tied}};
  if (name == "hedgehog") return {{"feature_map", "hedgehog"}, {"num_features", key_dim}, {"own_q_map", !tied}};
  if (name == "t2r") return {{"feature_map", "relu"}, {"projection", true}, {"num_features", key_dim}, {"own_q_map", !tied}};
  if (name == "elu") return {{"feature_map", "elu_plus_one"}};
  if (name == "relu" || name == "identity") return {{"feature_map", name}};
  if (name == "dpfp") return {{"feature_map", "dpfp"}, {"nu", kNu}, {"negate_second", true}};
  fields->FailAt("feature_map", ValueText(name) +
                                    " is not supported, expected \"elementwise_product\", \"hedgehog\", \"t2r\", \"elu\", "
                                    "\"relu\", \"identity\" or \"dpfp\"");
}

// A layer of a map, which serves all heads.
void AddLayer(const std::string& from, const std::string& to, const char* part, const FlaHeads& heads, uint32_t kv_heads,
              Translation* translation) {
  AddAttnRule(from + "." + part, to + "_" + part, translation);
  TensorRule& rule = translation->rules.back();
  std::vector<uint32_t> order;
  for (uint32_t row = 0; row < kv_heads * heads.key_dim; ++row) order.push_back(row % heads.key_dim);
  rule.order = std::make_shared<const std::vector<uint32_t>>(std::move(order));
  rule.all_rows = heads.key_dim;
  rule.heads = kv_heads;
}

void AddMaps(const Json& attention, const FlaHeads& heads, uint32_t kv_heads, Translation* translation) {
  const bool product = attention["feature_map"] == "product", biased = attention["feature_map"] == "hedgehog";
  const bool own_q_map = attention["own_q_map"].get<bool>();
  for (const char* side : {"k", "q"}) {
    const std::string map = std::string("feature_map_") + side, prefix = side == std::string("q") ? "q_" : "";
    if (!prefix.empty() && !own_q_map) {  // that of k once more
      const std::vector<std::string> layers =
          product ? std::vector<std::string>{".layer1", ".layer2"} : std::vector<std::string>{".layer"};
      for (const std::string& layer : layers) {
        for (const char* part : {".weight", ".bias"}) {
          translation->rules.push_back({"layers.*.attn.feature_map_q" + layer + part, ""});
          translation->rules.back().same_as = "layers.*.attn.feature_map_k" + layer + part;
        }
      }
      continue;
    }
    if (!product) {
      AddLayer(map + ".layer", prefix + "feature", "weight", heads, kv_heads, translation);
      if (biased) AddLayer(map + ".layer", prefix + "feature", "bias", heads, kv_heads, translation);
      continue;
    }
    for (const char* part : {"weight", "bias"}) {
      AddLayer(map + ".layer1", prefix + "feature", part, heads, kv_heads, translation);
      AddLayer(map + ".layer2", prefix + "factor", part, heads, kv_heads, translation);
    }
  }
}

}  // namespace

Translation TranslateLinearAttn(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {4, 1, 1, 4}, &translation);
  ReadFlaKvHeads(config, heads, &translation);
  SetHeadNorm("norm.weight", translation.config["norm_eps"], /*gate=*/false, &translation);

  Json attention = FeatureMap(&fields, heads.key_dim);
  attention["system"] = "linear_attention";
  const bool dpfp = attention["feature_map"] == "dpfp";
  const bool norm_q = fields.Bool("norm_q", false), norm_k = fields.Bool("norm_k", false);
  if (norm_q != norm_k) fields.FailAt("norm_q", "a norm of q alone or k alone is not supported: expected norm_q equal to norm_k");
  if (norm_q && (dpfp || attention["feature_map"] == "product")) {
    fields.FailAt("norm_q", "true is not supported for this feature_map, whose features have both signs");
  }
  if (norm_q) attention.update({{"sum_norm", true}, {"sum_norm_eps", 1e-4f}});
  const uint32_t factor = dpfp ? 2 * kNu : attention["feature_map"] == "hedgehog" ? 2 : 1;
  const double features = static_cast<double>(heads.key_dim * factor), scale = 1 / std::sqrt(features);
  if (fields.Bool("norm_feature_map", false)) {  // scale q . S / (scale q . z + eps)
    attention.update({{"den_mode", "add"}, {"den_eps", 1e-10 / scale}});
  } else {
    attention["scale"] = scale;
  }
  if (attention.contains("own_q_map")) {
    AddMaps(attention, heads, translation.config["num_kv_heads"].get<uint32_t>(), &translation);
  }
  translation.config["attention"] = attention;
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
