// delta_net: the delta rule.
#include <cmath>
#include <utility>

#include "tools/convert/families/fla.h"

namespace tarn::convert {
namespace {

// Activation and norm of q and k. Errors: pairs of them that are not supported.
Json ReadQkNorm(ForeignConfig* config, double scale, std::string* activation) {
  Fields& fields = config->fields();
  *activation = fields.Text("qk_activation", std::string("silu"));
  const std::string norm = fields.Text("qk_norm", std::string("l2"));
  if (norm == "l2") {
    if (*activation == "elu") fields.FailAt("qk_activation", "\"elu\" is not supported with qk_norm \"l2\"");
    if (*activation != "identity") *activation = FlaFunction(config, "qk_activation", "silu");
    return {{"system", "deltanet"}};
  }
  if (norm != "sum") fields.FailAt("qk_norm", ValueText(norm) + " is not supported, expected \"l2\" or \"sum\"");
  if (*activation != "elu") fields.FailAt("qk_activation", ValueText(*activation) + " is not supported with qk_norm \"sum\"");
  *activation = "identity";
  return {{"system", "linear_attention"},
          {"feature_map", "elu_plus_one"},
          {"sum_norm", true},
          {"sum_norm_eps", 0},
          {"rule", "delta"},
          {"scale", scale}};
}

}  // namespace

Translation TranslateDeltaNet(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  const FlaHeads heads = ReadFla(config, {16, 1, 1, 4}, &translation);
  fields.Find("use_output_norm");  // there always is one
  const bool learned_beta = fields.Bool("use_beta", true), twice = fields.Bool("allow_neg_eigval", false);
  if (twice && !learned_beta)
    fields.FailAt("allow_neg_eigval", "true is not supported with use_beta false, where beta is always 2");
  std::string activation;
  Json attention = ReadQkNorm(config, 1 / std::sqrt(static_cast<double>(heads.key_dim)), &activation);
  // A convolution has the silu of all three, or none.
  const bool silu = activation == "silu", convolved = ReadShortConv(config, true, silu, &translation);
  if (!convolved || !silu) {
    translation.config["qk_activation"] = activation == "identity" ? "none" : activation;
    translation.config["v_activation"] = "silu";
  }
  SetHeadNorm("o_norm.weight", translation.config["norm_eps"], fields.Bool("use_gate", false), &translation);
  if (twice || !learned_beta) attention["beta_scale"] = 2;
  if (!learned_beta) {  // 2 sigmoid(0) = 1
    TensorRule rule{"", "model.layers.*.attn.b_proj.weight"};
    rule.zeros = {heads.heads, translation.config["hidden_size"].get<uint32_t>()};
    rule.layers = translation.config["num_layers"];
    translation.rules.push_back(rule);
  }
  AddAttnRule("b_proj.weight", "b_proj.weight", &translation);
  translation.config["attention"] = attention;
  return WithFlaAttention(config, options, std::move(translation));
}

}  // namespace tarn::convert
