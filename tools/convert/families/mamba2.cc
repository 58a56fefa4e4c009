// mamba2, of flash-linear-attention and of transformers: layers of one mixer each, without an MLP.
#include <string>

#include "tools/convert/families/mamba_mixer.h"
#include "tools/convert/json/error.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// How a model is trained, and what only fresh weights or other implementations read. The norm is there whatever rms_norm says.
constexpr const char* kIgnored[] = {"chunk_size",    "fuse_cross_entropy",       "fuse_linear_cross_entropy",
                                    "fuse_norm",     "rescale_prenorm_residual", "residual_in_fp32",
                                    "rms_norm",      "time_step_floor",          "time_step_max",
                                    "time_step_min", "time_step_rank",           "use_l2warp"};

constexpr const char* kTensors[][2] = {{"embeddings.weight", "model.embeddings.weight"},
                                       {"norm_f.weight", "model.norm.weight"},
                                       {"layers.*.norm.weight", "model.layers.*.attn_norm.weight"}};

// The same of fla since 0.6.0, which has other names for them.
constexpr const char* kIgnoredByFla[] = {"A_init_range", "conv_init", "dt_init_floor", "dt_max", "dt_min"};

// Fields of other implementations that transformers keeps in its configs, and does not read.
constexpr const char* kIgnoredByTransformers[] = {"norm_before_gate", "time_step_init_scheme", "time_step_scale"};

bool IsOfTransformers(const Fields& fields) { return fields.Has("layer_norm_epsilon"); }

MambaSizes ReadSizes(Fields* fields, uint32_t hidden) {
  const bool transformers = IsOfTransformers(*fields);  // whose defaults are others
  MambaSizes sizes{};
  sizes.head_dim = fields->Size("head_dim", 64, kMaxHeads);
  const uint64_t inner = uint64_t{fields->Size("expand", 2)} * hidden;
  if (inner > Fields::kMaxSize || inner % sizes.head_dim != 0) {
    fields->FailAt("head_dim", std::to_string(sizes.head_dim) + " does not divide expand * hidden_size = " + std::to_string(inner));
  }
  sizes.heads = static_cast<uint32_t>(inner) / sizes.head_dim;
  if (fields->Size("num_heads", sizes.heads) != sizes.heads) {
    fields->FailAt("num_heads", ValueText(*fields->Find("num_heads")) +
                                    " is not expand * hidden_size / head_dim = " + std::to_string(sizes.heads));
  }
  sizes.groups = fields->Size("n_groups", transformers ? 8 : 1, kMaxHeads);
  sizes.state = fields->Size("state_size", 128, kMaxHeads);
  if (sizes.heads % sizes.groups != 0) {
    fields->FailAt("n_groups", std::to_string(sizes.groups) + " does not divide the " + std::to_string(sizes.heads) + " heads");
  }
  if (transformers && fields->Size("intermediate_size", sizes.inner()) != sizes.inner()) {
    fields->FailAt("intermediate_size", ValueText(*fields->Find("intermediate_size")) +
                                            " is not expand * hidden_size = " + std::to_string(sizes.inner()));
  }
  sizes.taps = static_cast<uint32_t>(fields->Integer("conv_kernel", kMinConvTaps, kMaxConvTaps, 4));
  sizes.conv_bias = fields->Bool("use_conv_bias", true);
  sizes.in_bias = sizes.out_bias = fields->Bool("use_bias", false);
  return sizes;
}

}  // namespace

Translation TranslateMamba2(ForeignConfig* config, const FamilyOptions&) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : kIgnored) fields.Find(key);
  if (IsOfTransformers(fields)) {
    for (const char* key : kIgnoredByTransformers) fields.Find(key);
  } else {
    for (const char* key : kIgnoredByFla) fields.Find(key);
    config->Require("D_has_hdim", false);
    config->Require("norm_before_gate", false);
    config->Require("rmsnorm", true);
  }
  config->Require("hidden_act", "silu");
  const uint32_t vocab = fields.Size("vocab_size", 32768), hidden = fields.Size("hidden_size");
  const MambaSizes sizes = ReadSizes(&fields, hidden);
  const float eps = fields.PositiveNumber(IsOfTransformers(fields) ? "layer_norm_epsilon" : "norm_eps", 1e-5f);
  Json attention = {{"system", "mamba2"}};
  ReadSteps(&fields, fields.Has("dt_limit") ? "dt_limit" : "time_step_limit", &attention);
  translation.prefix = "backbone.";
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", hidden},
                        {"num_layers", fields.Size("num_hidden_layers", std::nullopt, kMostLayers)},
                        {"intermediate_size", 0u},
                        {"hidden_act", "silu"},
                        {"norm", "rmsnorm"},
                        {"norm_eps", eps},
                        {"attention", attention},
                        {"tie_word_embeddings", fields.Bool("tie_word_embeddings", false)}};
  translation.config.update(MambaBlock(sizes, eps));
  config->EndTokens(vocab, &translation.config);
  for (const auto& [from, to] : kTensors) translation.rules.push_back({from, to});
  for (const TensorRule& rule : MambaRules("layers.*.mixer.", "model.layers.*.attn.", sizes)) {
    translation.rules.push_back(rule);
  }
  return translation;
}

}  // namespace tarn::convert
