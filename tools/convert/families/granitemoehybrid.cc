// granitemoehybrid without experts: Mamba 2, and in some layers softmax attention with rope or without positions; the factors of
// granite, and an MLP whose gate and up are one tensor.
#include <string>
#include <vector>

#include "tools/convert/families/granite.h"
#include "tools/convert/families/hybrid.h"
#include "tools/convert/families/mamba_mixer.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Of experts.
constexpr const char* kUnread[] = {"num_experts_per_tok", "output_router_logits", "router_aux_loss_coef"};

constexpr Choice<bool> kPositions[] = {{"nope", false}, {"rope", true}};

// Errors: a mixture of experts, which every layer has or none.
void CheckDense(Fields* fields) {
  for (const char* key : kUnread) fields->Find(key);
  const uint64_t experts = fields->Integer("num_local_experts", 0, Fields::kMaxSize, 8);
  if (experts == 0) return;
  fields->FailAt("num_local_experts", "every layer is a mixture of " + std::to_string(experts) +
                                          " experts, which is not supported; expected 0, a dense model");
}

// Gate and up one behind the other.
void AddMlp(uint32_t inner, std::vector<TensorRule>* rules) {
  const std::string from = "layers.*.shared_mlp.", to = "model.layers.*.mlp.";
  rules->push_back(Rows(from + "input_linear.weight", to + "gate_proj.weight", {0, inner, 1, 0}, 2 * inner));
  rules->push_back(Rows(from + "input_linear.weight", to + "up_proj.weight", {inner, inner, 1, 0}, 2 * inner));
  rules->push_back({from + "output_linear.weight", to + "down_proj.weight"});
}

std::vector<TensorRule> AttentionRules(const LlamaSizes& sizes) {
  const std::string from = "layers.*.self_attn.", to = "model.layers.*.attn.";
  std::vector<TensorRule> rules;
  AddTurned(from + "q_proj", to + "q_proj", sizes.rotary, sizes.heads, &rules);
  AddTurned(from + "k_proj", to + "k_proj", sizes.rotary, sizes.kv_heads, &rules);
  AddBoth(from + "v_proj", to + "v_proj", &rules);
  return rules;
}

}  // namespace

Translation TranslateGraniteMoeHybrid(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  CheckDense(&fields);
  config->Require("normalization_function", "rmsnorm");
  const uint32_t inner = fields.Size("shared_intermediate_size", 1024, Fields::kMaxSize / 2);
  AddMlp(inner, &translation.rules);
  LlamaDefaults defaults{2048, 1e-6f, 0};
  defaults.rope = fields.OneOf<bool>("position_embedding_type", kPositions, false);
  if (!defaults.rope) {  // what nothing reads
    for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters"}) fields.Find(key);
  }
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  Json& c = translation.config;
  if (c["hidden_act"] != "swiglu") fields.FailAt("hidden_act", "only \"silu\" is supported, which the convolution has, too");
  c["intermediate_size"] = inner;
  c["attention_bias"] = fields.Bool("attention_bias", false);
  const float residual = FoldGranite(config, &translation);

  const auto hidden = c["hidden_size"].get<uint32_t>();
  const uint64_t width = uint64_t{fields.Size("mamba_expand", 2)} * hidden;
  if (width > Fields::kMaxSize) fields.FailAt("mamba_expand", "it times hidden_size = " + std::to_string(hidden) + " is too large");
  MambaSizes mamba = ReadMambaFields(&fields, static_cast<uint32_t>(width), {128, 256});
  mamba.out_bias = mamba.in_bias;
  MambaFactors factors;
  factors.out = residual;
  const std::vector<bool> softmax = FullLayers(&fields, c["num_layers"], "linear_attention", [](uint32_t) { return false; });
  SetLayers(
      softmax, {{"system", "mamba2"}}, MambaBlock(mamba, c["norm_eps"]),
      [&] { return FullAttention(sizes.positions, options, &translation); }, &translation);
  AddLayerRules(softmax, true, AttentionRules(sizes), &translation.rules);
  AddLayerRules(softmax, false, MambaRules("layers.*.mamba.", "model.layers.*.attn.", mamba, factors), &translation.rules);
  return translation;
}

}  // namespace tarn::convert
