// falcon_h1: in every layer Mamba 2 and softmax attention beside each other, which read the same rows. Factors (muP) stand at most
// projections; all are linear, and so they are folded: those of embeddings into embedding_scale, that of the logits into the final
// norm, all others into the weights and biases of the projections behind or before which they stand.
#include <array>
#include <string>

#include "tools/convert/families/decoder.h"
#include "tools/convert/families/hybrid.h"
#include "tools/convert/families/mamba_mixer.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Fields of published files that the library does not read: sizes that others follow from, and which logits a call computes.
constexpr const char* kUnread[] = {"mlp_expansion_factor", "num_logits_to_keep"};

constexpr const char* kTensors[][2] = {{"layers.*.input_layernorm.weight", "model.layers.*.attn_norm.weight"},
                                       {"layers.*.pre_ff_layernorm.weight", "model.layers.*.mlp_norm.weight"},
                                       {"final_layernorm.weight", "model.norm.weight"}};

// A list of so many numbers; missing: ones.
template <size_t kCount>
std::array<float, kCount> ReadFactors(Fields* fields, const char* key) {
  std::array<float, kCount> factors;
  factors.fill(1);
  const Json* list = fields->Find(key);
  if (list == nullptr) return factors;
  if (!list->is_array() || list->size() != kCount) {
    fields->FailAt(key, ValueText(*list) + " is not a list of " + std::to_string(kCount) + " numbers");
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (!(*list)[i].is_number()) fields->FailAt(key, ValueText((*list)[i]) + " is not a number");
    factors[i] = (*list)[i].get<float>();
  }
  return factors;
}

// The mixer beside the attention of every layer.
void AddMixer(ForeignConfig* config, Translation* translation) {
  Fields& fields = config->fields();
  Json& c = translation->config;
  const auto hidden = c["hidden_size"].get<uint32_t>();
  const float eps = c["norm_eps"].get<float>();
  const uint32_t expand = fields.Size("mamba_expand", 2);
  const uint64_t expanded = uint64_t{expand} * hidden;
  if (expanded > Fields::kMaxSize) fields.FailAt("mamba_expand", std::to_string(expand) + " times hidden_size is too large");
  const uint32_t inner = config->IsNull("mamba_d_ssm") ? static_cast<uint32_t>(expanded) : fields.Size("mamba_d_ssm", 1024);
  MambaSizes sizes = ReadMambaFields(&fields, inner, {128, 256});
  sizes.out_bias = fields.Bool("projectors_bias", false);
  Json block = MambaBlock(sizes, eps);
  const bool norm = fields.Bool("mamba_rms_norm", false), gate_behind = fields.Bool("mamba_norm_before_gate", true);
  if (norm) {
    block["output_gate_first"] = !gate_behind;
  } else {
    for (const char* field : {"output_norm", "output_norm_groups", "output_norm_eps", "output_gate_first"}) block.erase(field);
  }
  c["second_attention"] = {{"system", "mamba2"}};
  c["second_block"] = block;

  const std::array<float, 5> parts = ReadFactors<5>(&fields, "ssm_multipliers");
  MambaFactors factors{parts[0], parts[1], parts[2], parts[3], parts[4]};
  factors.in = fields.Number("ssm_in_multiplier", 1.0f);
  factors.out = fields.Number("ssm_out_multiplier", 1.0f);
  const std::vector<bool> all(c["num_layers"].get<uint32_t>(), true);
  AddLayerRules(all, true, MambaRules("layers.*.mamba.", "model.layers.*.second_attn.", sizes, factors), &translation->rules);
}

}  // namespace

Translation TranslateFalconH1(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : kUnread) fields.Find(key);
  config->Require("mamba_use_mlp", true);
  config->Require("attn_layer_indices", nullptr);
  std::vector<TensorRule>& rules = translation.rules;
  for (const auto& [from, to] : kTensors) rules.push_back({from, to});
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"}) {
    AddBoth("layers.*.feed_forward." + part, "model.layers.*.mlp." + part, &rules);
  }
  LlamaDefaults defaults{8192, 1e-5f, 8};
  defaults.own_norms = true;
  defaults.theta = 1e5f;
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  AddProjections(sizes, &rules);
  Json& c = translation.config;
  if (c["hidden_act"] != "swiglu") fields.FailAt("hidden_act", "only \"silu\" is supported, which the convolution has, too");
  c["attention_bias"] = fields.Bool("attention_bias", false);
  c["mlp_bias"] = fields.Bool("mlp_bias", false);
  c["embedding_scale"] = fields.PositiveNumber("embedding_multiplier", 1.0f);
  c["attention"] = FullAttention(sizes.positions, options, &translation);

  const float in = fields.Number("attention_in_multiplier", 1.0f), key = fields.Number("key_multiplier", 1.0f),
              out = fields.Number("attention_out_multiplier", 1.0f);
  const std::array<float, 2> mlp = ReadFactors<2>(&fields, "mlp_multipliers");
  for (const char* part : {"q_proj", "v_proj"}) Fold(std::string(part) + ".weight", in, 0, &rules);
  Fold("k_proj.weight", in * key, 0, &rules);
  Fold("k_proj.bias", key, 0, &rules);
  for (const char* end : {".weight", ".bias"}) {
    Fold(std::string("o_proj") + end, out, 0, &rules);
    Fold(std::string("gate_proj") + end, mlp[0], 0, &rules);
    Fold(std::string("down_proj") + end, mlp[1], 0, &rules);
  }
  Fold("model.norm.weight", fields.Number("lm_head_multiplier", 1.0f), 0, &rules);
  AddMixer(config, &translation);  // behind the folding: its projections have other factors
  return translation;
}

}  // namespace tarn::convert
