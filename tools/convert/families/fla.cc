#include "tools/convert/families/fla.h"

#include <algorithm>
#include <cmath>

#include "variants/limits.h"

namespace tarn::convert {
namespace {

// How a model is trained and which of several equal implementations runs.
constexpr const char* kIgnored[] = {"attn_mode", "fuse_cross_entropy", "fuse_linear_cross_entropy",
                                    "fuse_norm", "fuse_swiglu",        "max_position_embeddings",
                                    "use_l2warp"};

constexpr const char* kTensors[] = {"embeddings.weight",
                                    "norm.weight",
                                    "layers.*.attn_norm.weight",
                                    "layers.*.mlp_norm.weight",
                                    "layers.*.mlp.gate_proj.weight",
                                    "layers.*.mlp.up_proj.weight",
                                    "layers.*.mlp.down_proj.weight",
                                    "layers.*.attn.q_proj.weight",
                                    "layers.*.attn.k_proj.weight",
                                    "layers.*.attn.v_proj.weight",
                                    "layers.*.attn.o_proj.weight"};

// Of the MLP, where config.json does not say it.
uint32_t InnerWidth(uint32_t hidden, uint32_t ratio) {
  constexpr uint64_t kStep = 256;
  const uint64_t wanted = uint64_t{hidden} * ratio * 2 / 3;
  return static_cast<uint32_t>(std::min<uint64_t>((wanted + kStep - 1) / kStep * kStep, Fields::kMaxSize));
}

// The width of a head whose heads together are `expand` times as wide as a row.
uint32_t HeadWidth(Fields* fields, const char* key, double expand, uint32_t hidden, uint32_t heads) {
  const double width = std::trunc(expand * hidden);
  const auto all = static_cast<uint32_t>(std::min<double>(width, Fields::kMaxSize));
  if (all == 0 || all % heads != 0) {
    fields->FailAt(key, ValueText(Json(expand)) + " makes " + std::to_string(all) + " of hidden_size = " + std::to_string(hidden) +
                            ", which num_heads = " + std::to_string(heads) + " does not divide");
  }
  return all / heads;
}

// expand_k or expand_v; older versions misspell it.
double ReadExpand(Fields* fields, const std::string& name, double fallback) {
  for (const char* spelling : {"exapnd_", "expand_"}) {
    const std::string key = spelling + name;
    if (!fields->Has(key.c_str())) continue;
    fields->PositiveNumber(key.c_str());
    fallback = fields->Find(key.c_str())->get<double>();  // as f32 a product might end below the whole number that it is
  }
  return fallback;
}

void SetHeads(const FlaHeads& heads, Json* config) {
  (*config)["num_heads"] = heads.heads;
  (*config)["head_dim"] = heads.key_dim;
  (*config)["value_head_dim"] = heads.value_dim;
}

}  // namespace

void ReadFlaSkeleton(ForeignConfig* config, uint32_t hidden_ratio, uint32_t layers, Translation* translation) {
  Fields& fields = config->fields();
  for (const char* key : kIgnored) fields.Find(key);
  config->Require("elementwise_affine", true);
  config->Require("attnres_block_size", nullptr);
  config->Require("hidden_act", "swish");
  const uint32_t vocab = fields.Size("vocab_size", 32000), hidden = fields.Size("hidden_size", 2048);
  const uint32_t ratio = fields.Size("hidden_ratio", config->IsNull("hidden_ratio") ? 4 : hidden_ratio);
  translation->prefix = "model.";
  translation->config = {{"vocab_size", vocab},
                         {"hidden_size", hidden},
                         {"num_layers", fields.Size("num_hidden_layers", layers, kMostLayers)},
                         {"intermediate_size", fields.Size("intermediate_size", InnerWidth(hidden, ratio))},
                         {"hidden_act", "swiglu"},
                         {"norm", "rmsnorm"},
                         {"norm_eps", fields.PositiveNumber("norm_eps", fields.PositiveNumber("rms_norm_eps", 1e-6f))},
                         {"tie_word_embeddings", fields.Bool("tie_word_embeddings", false)}};
  config->EndTokens(vocab, &translation->config);
  for (const char* name : kTensors) translation->rules.push_back({name, std::string("model.") + name});
}

FlaHeads ReadFla(ForeignConfig* config, const FlaDefaults& defaults, Translation* translation) {
  ReadFlaSkeleton(config, defaults.hidden_ratio, 24, translation);
  Fields& fields = config->fields();
  Json& ours = translation->config;
  const auto hidden = ours["hidden_size"].get<uint32_t>();
  FlaHeads sizes{fields.Size("num_heads", defaults.heads, kMaxHeads), 0, 0};
  sizes.key_dim = HeadWidth(&fields, "expand_k", ReadExpand(&fields, "k", defaults.expand_k), hidden, sizes.heads);
  sizes.value_dim = HeadWidth(&fields, "expand_v", ReadExpand(&fields, "v", defaults.expand_v), hidden, sizes.heads);
  SetHeads(sizes, &ours);
  return sizes;
}

FlaHeads ReadGatedDelta(ForeignConfig* config, const FlaHeads& defaults, double expand_v, uint32_t layers,
                        Translation* translation) {
  ReadFlaSkeleton(config, /*hidden_ratio=*/4, layers, translation);
  Fields& fields = config->fields();
  const uint32_t key_heads = fields.Size("num_heads", defaults.heads, kMaxHeads);
  FlaHeads sizes{fields.Size("num_v_heads", key_heads, kMaxHeads), fields.Size("head_dim", defaults.key_dim, kMaxHeads), 0};
  if (sizes.heads % key_heads != 0) {
    fields.FailAt("num_v_heads", std::to_string(sizes.heads) + " is no multiple of num_heads = " + std::to_string(key_heads));
  }
  const double expand = ReadExpand(&fields, "v", expand_v), width = expand * sizes.key_dim;
  // As fla has it: a product may end below the whole number that it is.
  if (!(width >= 1 && width <= kMaxHeads) || std::fabs(width - std::round(width)) > 1e-5 * width) {
    fields.FailAt("expand_v", ValueText(Json(expand)) + " makes no width of heads of head_dim = " + std::to_string(sizes.key_dim));
  }
  sizes.value_dim = static_cast<uint32_t>(std::round(width));
  SetHeads(sizes, &translation->config);
  translation->config["num_key_heads"] = key_heads;
  if (!ReadShortConv(config, true, /*silu=*/true, translation)) {
    translation->config["qk_activation"] = translation->config["v_activation"] = "silu";
  }
  return sizes;
}

void ReadFlaKvHeads(ForeignConfig* config, const FlaHeads& heads, Translation* translation) {
  Fields& fields = config->fields();
  const uint32_t kv_heads = fields.Size("num_kv_heads", heads.heads, kMaxHeads);
  if (heads.heads % kv_heads != 0) {
    fields.FailAt("num_kv_heads", std::to_string(kv_heads) + " does not divide num_heads = " + std::to_string(heads.heads));
  }
  translation->config["num_kv_heads"] = kv_heads;
}

bool ReadShortConv(ForeignConfig* config, bool fallback, bool silu, Translation* translation, const std::string& names,
                   const std::string& parts) {
  Fields& fields = config->fields();
  const auto taps = static_cast<uint32_t>(fields.Integer("conv_size", kMinConvTaps, kMaxConvTaps, 4));
  if (!fields.Bool("use_short_conv", fallback)) return false;
  Json& ours = translation->config;
  ours["attention_conv"] = true;
  ours["conv_taps"] = taps;
  ours["conv_activation"] = silu ? "silu" : "none";
  for (size_t i = 0; i < parts.size(); ++i) {
    AddAttnRule(std::string(1, names[i]) + "_conv1d.weight", std::string(1, parts[i]) + "_conv.weight", translation);
    translation->rules.back().matrix = true;
  }
  return true;
}

void SetHeadNorm(const char* norm, float eps, bool gate, Translation* translation) {
  translation->config["output_norm"] = "head";
  translation->config["output_norm_eps"] = eps;
  AddAttnRule(norm, "o_norm.weight", translation);
  if (!gate) return;
  translation->config["output_gate"] = "silu";
  AddAttnRule("g_proj.weight", "o_gate_proj.weight", translation);
}

void AddAttnRule(const std::string& from, const std::string& to, Translation* translation) {
  translation->rules.push_back({"layers.*.attn." + from, "model.layers.*.attn." + to});
}

std::string FlaFunction(ForeignConfig* config, const char* key, const char* fallback) {
  const std::string name = config->fields().Text(key, std::string(fallback));
  if (name == "none" || name == "relu" || name == "silu") return name;
  if (name == "swish") return "silu";
  config->fields().FailAt(key, ValueText(name) + " is not supported, expected \"swish\" or \"relu\"");
}

}  // namespace tarn::convert
