// lfm2: gated short convolutions, and in some layers softmax attention with norms of every head of q and k.
#include <algorithm>

#include "tools/convert/families/hybrid.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// Fields of the first published files, which their library does not read; what they could change is that value.
constexpr const char* kUnread[] = {"block_dim",
                                   "block_mlp_init_scale",
                                   "block_norm_eps",
                                   "block_out_init_scale",
                                   "conv_dim",
                                   "conv_dim_out",
                                   "block_use_xavier_init",
                                   "conv_use_xavier_init",
                                   "num_heads",
                                   "theta"};

constexpr const char* kTensors[][2] = {{"layers.*.operator_norm.weight", "model.layers.*.attn_norm.weight"},
                                       {"layers.*.ffn_norm.weight", "model.layers.*.mlp_norm.weight"},
                                       {"layers.*.feed_forward.w1.weight", "model.layers.*.mlp.gate_proj.weight"},
                                       {"layers.*.feed_forward.w2.weight", "model.layers.*.mlp.down_proj.weight"},
                                       {"layers.*.feed_forward.w3.weight", "model.layers.*.mlp.up_proj.weight"},
                                       {"embedding_norm.weight", "model.norm.weight"}};

// Two thirds of the field, times a factor, rounded up. Like the library, through whole numbers.
uint32_t InnerWidth(ForeignConfig* config, uint32_t width) {
  Fields& fields = config->fields();
  const uint32_t step = fields.Size("block_multiple_of", 256);
  fields.PositiveNumber("block_ffn_dim_multiplier", 1.0f);
  const Json* factor = fields.Find("block_ffn_dim_multiplier");
  if (!fields.Bool("block_auto_adjust_ff_dim", true)) return width;
  auto inner = uint64_t{2} * width / 3;
  if (config->IsNull("block_ffn_dim_multiplier")) return static_cast<uint32_t>(std::max<uint64_t>(inner, 1));
  const double scaled = (factor == nullptr ? 1.0 : factor->get<double>()) * static_cast<double>(inner);
  inner = static_cast<uint64_t>(std::min<double>(scaled, Fields::kMaxSize));
  return static_cast<uint32_t>(std::clamp<uint64_t>((inner + step - 1) / step * step, 1, Fields::kMaxSize));
}

std::vector<TensorRule> AttentionRules(const LlamaSizes& sizes) {
  std::vector<TensorRule> rules;
  AddTurned("layers.*.self_attn.q_proj", "model.layers.*.attn.q_proj", sizes.rotary, sizes.heads, &rules);
  AddTurned("layers.*.self_attn.k_proj", "model.layers.*.attn.k_proj", sizes.rotary, sizes.kv_heads, &rules);
  for (const auto& [from, to] :
       {std::pair{"v_proj", "v_proj"}, {"out_proj", "o_proj"}, {"q_layernorm", "q_norm"}, {"k_layernorm", "k_norm"}}) {
    AddBoth(std::string("layers.*.self_attn.") + from, std::string("model.layers.*.attn.") + to, &rules);
  }
  return rules;
}

// in_proj makes k, q and v, in tarn's terms: y = q * conv(k * v).
std::vector<TensorRule> ConvRules(uint32_t width) {
  std::vector<TensorRule> rules;
  uint32_t first = 0;
  for (const char* projection : {"k_proj", "q_proj", "v_proj"}) {
    AddBoth("layers.*.conv.in_proj", std::string("model.layers.*.attn.") + projection, &rules);
    for (TensorRule* rule : {&rules.back(), &rules.back() - 1}) {
      rule->first_row = first;
      rule->rows = width;
      rule->all_rows = 3 * width;
    }
    first += width;
  }
  AddBoth("layers.*.conv.out_proj", "model.layers.*.attn.o_proj", &rules);
  AddBoth("layers.*.conv.conv", "model.layers.*.attn.conv", &rules);
  rules[rules.size() - 2].matrix = true;
  return rules;
}

}  // namespace

Translation TranslateLfm2(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : kUnread) fields.Find(key);
  config->Require("block_use_swiglu", true);
  config->Require("use_pos_enc", true);
  for (const auto& [from, to] : kTensors) translation.rules.push_back({from, to});
  LlamaDefaults defaults{128000, 1e-5f, 8};
  defaults.tied = fields.Bool("tie_embedding", true);
  defaults.own_norms = true;
  defaults.eps = "norm_eps";
  defaults.theta = 1e6f;
  fields.Find("intermediate_size");
  if (fields.Has("block_ff_dim")) defaults.inner = "block_ff_dim";  // that of the first files, which have it alone
  const LlamaSizes sizes = ReadLlama(config, defaults, &translation);
  Json& c = translation.config;
  if (fields.Has("tie_embedding")) c["tie_word_embeddings"] = defaults.tied;
  c["qk_norm"] = "head";
  const auto width = c["hidden_size"].get<uint32_t>(), layers = c["num_layers"].get<uint32_t>();
  c["intermediate_size"] = InnerWidth(config, c["intermediate_size"].get<uint32_t>());

  const Json* indices = fields.Find("full_attn_idxs");
  const std::vector<bool> full = FullLayers(&fields, layers, "conv", [&](uint32_t layer) {
    return indices == nullptr || (indices->is_array() && std::find(indices->begin(), indices->end(), layer) != indices->end());
  });
  const bool bias = fields.Bool("conv_bias", false);
  const uint64_t taps = fields.Integer("conv_L_cache", kMinConvTaps, kMaxConvTaps, 3);
  SetLayers(
      full, {{"system", "short_conv"}, {"taps", taps}, {"bias", bias}},
      {{"num_heads", 1u}, {"num_kv_heads", 1u}, {"head_dim", width}, {"attention_bias", bias}},
      [&] { return FullAttention(sizes.positions, options, &translation); }, &translation);
  AddLayerRules(full, true, AttentionRules(sizes), &translation.rules);
  AddLayerRules(full, false, ConvRules(width), &translation.rules);
  return translation;
}

}  // namespace tarn::convert
