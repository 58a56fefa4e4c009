// qwen3_next and qwen3_5: Gated DeltaNet, and in every fourth layer softmax attention with norms of every head of q and k, rope of
// a part of a head and a sigmoid gate on its output. Norms are by 1 + weight but for that of the delta rule's output. qwen3_5 is
// qwen3_5_text beside a part that sees images, which is not converted.
#include <utility>

#include "tools/convert/families/hybrid.h"
#include "variants/limits.h"

namespace tarn::convert {
namespace {

// Heads of the delta rule.
struct DeltaHeads {
  uint32_t key_heads, value_heads, key_dim, value_dim;

  uint32_t keys() const { return key_heads * key_dim; }
  uint32_t values() const { return value_heads * value_dim; }
  uint32_t group() const { return value_heads / key_heads; }
};

DeltaHeads ReadDelta(Fields* fields) {
  const DeltaHeads heads = {
      fields->Size("linear_num_key_heads", 16, kMaxHeads), fields->Size("linear_num_value_heads", 32, kMaxHeads),
      fields->Size("linear_key_head_dim", 128, kMaxHeads), fields->Size("linear_value_head_dim", 128, kMaxHeads)};
  if (heads.value_heads % heads.key_heads != 0) {
    fields->FailAt("linear_num_value_heads", std::to_string(heads.value_heads) +
                                                 " is no multiple of linear_num_key_heads = " + std::to_string(heads.key_heads));
  }
  constexpr uint32_t kMostColumns = Fields::kMaxSize / 4;  // of q, k, v and the gate together
  if (heads.keys() > kMostColumns || heads.values() > kMostColumns) {
    fields->FailAt("linear_num_value_heads", std::to_string(heads.value_heads) + " heads are too large");
  }
  return heads;
}

constexpr char kFrom[] = "layers.*.linear_attn.", kTo[] = "model.layers.*.attn.";

TensorRule Moved(const std::string& from, const std::string& to) { return {kFrom + from, kTo + to}; }
TensorRule Part(const std::string& from, const std::string& to, const RowGroups& rows, uint32_t all) {
  return Rows(kFrom + from, kTo + to, rows, all);
}

// Of the delta rule, but for the projections of the layer input.
std::vector<TensorRule> DeltaRules(const DeltaHeads& heads) {
  std::vector<TensorRule> rules = {Moved("norm.weight", "o_norm.weight"), Moved("out_proj.weight", "o_proj.weight"),
                                   Moved("dt_bias", "g_proj.bias"), Moved("A_log", "A_log")};
  uint32_t first = 0;
  for (const auto& [part, width] : {std::pair{"q_conv", heads.keys()}, {"k_conv", heads.keys()}, {"v_conv", heads.values()}}) {
    TensorRule rule = Moved("conv1d.weight", part + std::string(".weight"));
    rule.matrix = true;
    rule.first_row = first;
    rule.rows = width;
    rule.all_rows = 2 * heads.keys() + heads.values();
    rules.push_back(rule);
    first += width;
  }
  return rules;
}

// qwen3_next: q, k, v and the gate of a key head and its group of heads stand side by side, and so do their write strengths and
// decays.
void AddGrouped(const DeltaHeads& heads, std::vector<TensorRule>* rules) {
  const uint32_t k = heads.key_dim, v = heads.group() * heads.value_dim, stride = 2 * k + 2 * v, r = heads.group();
  uint32_t first = 0;
  for (const auto& [part, count] : {std::pair{"q_proj", k}, {"k_proj", k}, {"v_proj", v}, {"o_gate_proj", v}}) {
    rules->push_back(Part("in_proj_qkvz.weight", part + std::string(".weight"), {first, count, heads.key_heads, stride},
                          heads.key_heads * stride));
    first += count;
  }
  rules->push_back(Part("in_proj_ba.weight", "b_proj.weight", {0, r, heads.key_heads, 2 * r}, 2 * heads.value_heads));
  rules->push_back(Part("in_proj_ba.weight", "g_proj.weight", {r, r, heads.key_heads, 2 * r}, 2 * heads.value_heads));
}

// qwen3_5: one after the other.
void AddApart(const DeltaHeads& heads, std::vector<TensorRule>* rules) {
  uint32_t first = 0;
  for (const auto& [part, width] : {std::pair{"q_proj", heads.keys()}, {"k_proj", heads.keys()}, {"v_proj", heads.values()}}) {
    rules->push_back(
        Part("in_proj_qkv.weight", part + std::string(".weight"), {first, width, 1, 0}, 2 * heads.keys() + heads.values()));
    first += width;
  }
  rules->push_back(Moved("in_proj_z.weight", "o_gate_proj.weight"));
  rules->push_back(Moved("in_proj_b.weight", "b_proj.weight"));
  rules->push_back(Moved("in_proj_a.weight", "g_proj.weight"));
}

// q_proj has the rows of q and of the gate of every head, one after the other.
std::vector<TensorRule> SoftmaxRules(const LlamaSizes& sizes) {
  const std::string from = "layers.*.self_attn.";
  const uint32_t d = sizes.rotary.head_dim;
  std::vector<TensorRule> rules;
  AddTurned(from + "k_proj", std::string(kTo) + "k_proj", sizes.rotary, sizes.kv_heads, &rules);
  AddBoth(from + "v_proj", kTo + std::string("v_proj"), &rules);
  for (const char* part : {".weight", ".bias"}) {
    TensorRule q{from + "q_proj" + part, kTo + std::string("q_proj") + part};
    q.order = RotaryOrder(sizes.rotary, sizes.heads, 0, 2 * d);
    q.all_rows = 2 * sizes.heads * d;
    rules.push_back(q);
    rules.push_back(
        Rows(from + "q_proj" + part, kTo + std::string("o_gate_proj") + part, {d, d, sizes.heads, 2 * d}, 2 * sizes.heads * d));
  }
  for (const char* norm : {"q_norm", "k_norm"}) AddTurned(from + norm, kTo + std::string(norm), sizes.rotary, 1, &rules);
  Fold("norm.weight", 1, /*added=*/1, &rules);
  return rules;
}

// The fields that both have, and the tensors but for the projections of the delta rule.
void Read(ForeignConfig* config, const FamilyOptions& options, uint32_t kv_heads,
          void (*add_projections)(const DeltaHeads&, std::vector<TensorRule>*), Translation* translation) {
  Fields& fields = config->fields();
  LlamaDefaults defaults{32768, 1e-6f, kv_heads, 256};
  defaults.turned = 0.25;
  const LlamaSizes sizes = ReadLlama(config, defaults, translation);
  if (translation->scale) fields.FailAt("rope_scaling", "only kinds that leave cosines and sines as they are are supported");
  config->Require("use_sliding_window", false);
  for (const char* part : {"gate_proj", "up_proj"}) {
    translation->rules.push_back(
        {std::string("layers.*.mlp.") + part + ".weight", std::string("model.layers.*.mlp.") + part + ".weight"});
  }
  Fold("norm.weight", 1, /*added=*/1, &translation->rules);
  Json& c = translation->config;
  if (c["hidden_act"] != "swiglu") fields.FailAt("hidden_act", "only \"silu\" is supported, which the convolution has, too");
  const bool bias = fields.Bool("attention_bias", false);
  c["attention_bias"] = bias;
  c["qk_norm"] = "head";
  c["output_gate"] = "sigmoid";
  c["output_gate_bias"] = bias;

  const DeltaHeads heads = ReadDelta(&fields);
  const uint64_t taps = fields.Integer("linear_conv_kernel_dim", kMinConvTaps, kMaxConvTaps, 4);
  const uint32_t interval = fields.Size("full_attention_interval", 4);
  const std::vector<bool> full =
      FullLayers(&fields, c["num_layers"], "linear_attention", [interval](uint32_t layer) { return (layer + 1) % interval == 0; });
  const Json block = {{"num_heads", heads.value_heads},
                      {"num_kv_heads", heads.value_heads},
                      {"num_key_heads", heads.key_heads},
                      {"head_dim", heads.key_dim},
                      {"value_head_dim", heads.value_dim},
                      {"attention_conv", true},
                      {"conv_taps", taps},
                      {"conv_activation", "silu"},
                      {"output_norm", "head"},
                      {"output_norm_eps", c["norm_eps"]},
                      {"output_gate", "silu"}};
  SetLayers(
      full, {{"system", "gated_deltanet"}}, block, [&] { return FullAttention(sizes.positions, options, translation); },
      translation);
  std::vector<TensorRule> delta = DeltaRules(heads);
  add_projections(heads, &delta);
  AddLayerRules(full, true, SoftmaxRules(sizes), &translation->rules);
  AddLayerRules(full, false, delta, &translation->rules);
}

// Errors: a layer whose MLP is a mixture of experts.
void CheckDense(Fields* fields, uint32_t layers) {
  const Json* dense = fields->Find("mlp_only_layers");
  const uint32_t experts = static_cast<uint32_t>(fields->Integer("num_experts", 0, Fields::kMaxSize, 512));
  const uint32_t step = fields->Size("decoder_sparse_step", 1);
  for (const char* key : {"moe_intermediate_size", "shared_expert_intermediate_size", "num_experts_per_tok", "norm_topk_prob",
                          "output_router_logits", "router_aux_loss_coef"}) {
    fields->Find(key);
  }
  for (uint32_t layer = 0; layer < layers && experts > 0; ++layer) {
    if ((layer + 1) % step != 0) continue;
    bool listed = false;
    for (const Json& number : dense == nullptr ? Json::array() : *dense) listed = listed || number == layer;
    if (listed) continue;
    fields->FailAt("num_experts", "layer " + std::to_string(layer) + " is a mixture of " + std::to_string(experts) +
                                      " experts, which is not supported; a layer of mlp_only_layers is dense");
  }
}

}  // namespace

Translation TranslateQwen3Next(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  CheckDense(&config->fields(), config->fields().Size("num_hidden_layers", std::nullopt, kMostLayers));
  Read(config, options, 2, AddGrouped, &translation);
  translation.rules.push_back({"mtp.", ""});  // predicts further tokens
  return translation;
}

Translation TranslateQwen35Text(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  // What the library does not read: types of training, and a head that predicts further tokens.
  for (const char* key : {"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mlp_only_layers"}) {
    config->fields().Find(key);
  }
  config->Require("attn_output_gate", true);
  config->Require("num_experts", 0);
  Read(config, options, 4, AddApart, &translation);
  translation.prefix = "model.language_model.";  // as transformers 5 writes models of the text alone, too
  translation.other_prefix = "model.";
  translation.rules.push_back({"mtp.", ""});
  return translation;
}

Translation TranslateQwen35(ForeignConfig* config, const FamilyOptions& options) {
  Fields& fields = config->fields();
  for (const char* key : {"vision_config", "image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id",
                          "language_model_only"}) {
    fields.Find(key);
  }
  const Json* given = fields.Find("text_config");
  if (given == nullptr || !given->is_object()) fields.FailAt("text_config", "an object is missing");
  Json text = *given;
  for (const char* key : {"bos_token_id", "eos_token_id", "tie_word_embeddings"}) {
    const Json* value = fields.Find(key);
    if (value != nullptr) text[key] = *value;
  }
  ForeignConfig inner(text, fields.where() + ": text_config", config->context());
  Translation translation = TranslateQwen35Text(&inner, options);
  inner.Finish();
  translation.rules.push_back({"model.visual.", ""});
  return translation;
}

}  // namespace tarn::convert
