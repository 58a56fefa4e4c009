// mamba2, of flash-linear-attention and of transformers: layers of one mixer each, without an MLP. A row of in_proj is z, x, B, C
// and dt one behind the other: the gate, v, k and q of heads that share keys in groups, and the logits of the step.
#include <string>

#include "tools/convert/families/family.h"
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
                                       {"layers.*.norm.weight", "model.layers.*.attn_norm.weight"},
                                       {"layers.*.mixer.norm.weight", "model.layers.*.attn.o_norm.weight"},
                                       {"layers.*.mixer.out_proj.weight", "model.layers.*.attn.o_proj.weight"},
                                       {"layers.*.mixer.A_log", "model.layers.*.attn.A_log"},
                                       {"layers.*.mixer.D", "model.layers.*.attn.skip"},
                                       {"layers.*.mixer.dt_bias", "model.layers.*.attn.g_proj.bias"}};

// Fields of other implementations that transformers keeps in its configs, and does not read.
constexpr const char* kIgnoredByTransformers[] = {"norm_before_gate", "time_step_init_scheme", "time_step_scale"};

struct Sizes {
  uint32_t heads, groups, state, head_dim, taps;

  uint32_t inner() const { return heads * head_dim; }
  uint32_t keys() const { return groups * state; }
};

bool IsOfTransformers(const Fields& fields) { return fields.Has("layer_norm_epsilon"); }

Sizes ReadSizes(Fields* fields, uint32_t hidden) {
  const bool transformers = IsOfTransformers(*fields);  // whose defaults are others
  Sizes sizes{};
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
  return sizes;
}

// time_step_limit: null, or two numbers, of which the second may be "Infinity".
void ReadSteps(Fields* fields, Json* attention) {
  const Json* limit = fields->Find("time_step_limit");
  if (limit == nullptr) return;
  if (!limit->is_array() || limit->size() != 2 || !(*limit)[0].is_number() ||
      !((*limit)[1].is_number() || (*limit)[1] == "Infinity")) {
    fields->FailAt("time_step_limit", ValueText(*limit) + " is not a list of a number and a number or Infinity");
  }
  (*attention)["step_min"] = (*limit)[0];
  if ((*limit)[1].is_number()) (*attention)["step_max"] = (*limit)[1];
}

// Rules for the parts of a tensor, one behind the other.
struct Part {
  const char* to;
  uint32_t rows;
};
void AddParts(const std::string& from, const std::vector<Part>& parts, bool matrix, Translation* translation) {
  uint32_t all = 0;
  for (const Part& part : parts) all += part.rows;
  uint32_t first = 0;
  for (const Part& part : parts) {
    TensorRule rule{"layers.*.mixer." + from, std::string("model.layers.*.attn.") + part.to};
    rule.matrix = matrix;
    rule.first_row = first;
    rule.rows = part.rows;
    rule.all_rows = all;
    translation->rules.push_back(rule);
    first += part.rows;
  }
}

}  // namespace

Translation TranslateMamba2(ForeignConfig* config, const FamilyOptions&) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : kIgnored) fields.Find(key);
  if (IsOfTransformers(fields)) {
    for (const char* key : kIgnoredByTransformers) fields.Find(key);
  }
  config->Require("hidden_act", "silu");
  config->Require("use_bias", false);
  const uint32_t vocab = fields.Size("vocab_size", 32768), hidden = fields.Size("hidden_size");
  const Sizes sizes = ReadSizes(&fields, hidden);
  const float eps = fields.PositiveNumber(IsOfTransformers(fields) ? "layer_norm_epsilon" : "norm_eps", 1e-5f);
  const bool conv_bias = fields.Bool("use_conv_bias", true);
  Json attention = {{"system", "mamba2"}};
  ReadSteps(&fields, &attention);
  translation.prefix = "backbone.";
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", hidden},
                        {"num_layers", fields.Size("num_hidden_layers", std::nullopt, kMostLayers)},
                        {"num_heads", sizes.heads},
                        {"num_key_heads", sizes.groups},
                        {"head_dim", sizes.state},
                        {"value_head_dim", sizes.head_dim},
                        {"intermediate_size", 0u},
                        {"hidden_act", "silu"},
                        {"norm", "rmsnorm"},
                        {"norm_eps", eps},
                        {"attention_conv", true},
                        {"conv_taps", sizes.taps},
                        {"conv_bias", conv_bias},
                        {"output_skip", "head"},
                        {"output_gate", "silu"},
                        {"output_gate_first", true},
                        {"output_norm", "full"},
                        {"output_norm_eps", eps},
                        {"attention", attention},
                        {"tie_word_embeddings", fields.Bool("tie_word_embeddings", false)}};
  config->EndTokens(vocab, &translation.config);
  for (const auto& [from, to] : kTensors) translation.rules.push_back({from, to});
  AddParts("in_proj.weight",
           {{"o_gate_proj.weight", sizes.inner()},
            {"v_proj.weight", sizes.inner()},
            {"k_proj.weight", sizes.keys()},
            {"q_proj.weight", sizes.keys()},
            {"g_proj.weight", sizes.heads}},
           /*matrix=*/false, &translation);
  for (const std::string part : {"weight", "bias"}) {
    const std::string v = "v_conv." + part, k = "k_conv." + part, q = "q_conv." + part;
    AddParts("conv1d." + part, {{v.c_str(), sizes.inner()}, {k.c_str(), sizes.keys()}, {q.c_str(), sizes.keys()}}, part == "weight",
             &translation);
  }
  return translation;
}

}  // namespace tarn::convert
