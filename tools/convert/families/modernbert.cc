// modernbert: an encoder with rotary positions, norms before each part, a gated MLP, and a window in most layers; for masked
// language models and classifiers.
#include <string>
#include <utility>

#include "tools/convert/families/decoder.h"
#include "tools/convert/families/encoder_head.h"

namespace tarn::convert {
namespace {

struct Sizes {
  uint32_t hidden, layers, inner;
};

// The biases of norms that have none here.
void AddZeroBias(const std::string& norm, uint32_t hidden, std::vector<TensorRule>* rules) {
  TensorRule zeros{"", norm + ".bias"};
  zeros.zeros = {hidden};
  rules->push_back(zeros);
}

void AddRules(const Sizes& sizes, bool norm_bias, std::vector<TensorRule>* rules) {
  const std::string from = "layers.*.", to = "model.layers.*.";
  rules->push_back({"embeddings.tok_embeddings.weight", "model.embeddings.weight"});
  AddBoth("embeddings.norm", "model.embedding_norm", rules);
  AddBoth("final_norm", "model.norm", rules);
  for (const auto& [theirs, ours] :
       {std::pair{"attn_norm", "attn_norm"}, {"mlp_norm", "mlp_norm"}, {"attn.Wo", "attn.o_proj"}, {"mlp.Wo", "mlp.down_proj"}}) {
    AddBoth(from + theirs, to + ours, rules);
  }
  const auto add_parts = [&](const char* matrix, std::initializer_list<const char*> parts, uint32_t rows) {
    uint32_t first = 0;
    for (const char* part : parts) {
      AddBoth(from + matrix, to + part, rules);
      for (TensorRule* rule : {&rules->back(), &rules->back() - 1}) {
        rule->first_row = first;
        rule->rows = rows;
        rule->all_rows = static_cast<uint32_t>(parts.size()) * rows;
      }
      first += rows;
    }
  };
  add_parts("attn.Wqkv", {"attn.q_proj", "attn.k_proj", "attn.v_proj"}, sizes.hidden);
  add_parts("mlp.Wi", {"mlp.gate_proj", "mlp.up_proj"}, sizes.inner);
  if (norm_bias) return;
  AddZeroBias("model.embedding_norm", sizes.hidden, rules);
  AddZeroBias("model.norm", sizes.hidden, rules);
  for (uint32_t i = 0; i < sizes.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i);
    if (i > 0) AddZeroBias(layer + ".attn_norm", sizes.hidden, rules);
    AddZeroBias(layer + ".mlp_norm", sizes.hidden, rules);
  }
}

// A dense layer, an activation and a norm, whose biases are a choice; `dense` and `norm`: their names here.
void AddTransform(ForeignConfig* config, const Sizes& sizes, bool norm_bias, const char* dense, const char* norm,
                  Translation* translation) {
  std::vector<TensorRule>& rules = translation->rules;
  translation->config["head_act"] = config->Activation("classifier_activation", "gelu", /*gated=*/false);
  AddBoth("head.dense", dense, &rules);
  AddBoth("head.norm", norm, &rules);
  if (!config->fields().Bool("classifier_bias", false)) AddZeroBias(dense, sizes.hidden, &rules);
  if (!norm_bias) AddZeroBias(norm, sizes.hidden, &rules);
}

void AddHead(ForeignConfig* config, const Sizes& sizes, bool norm_bias, Translation* translation) {
  Fields& fields = config->fields();
  Json& c = translation->config;
  std::vector<TensorRule>& rules = translation->rules;
  const std::string architecture = HeadArchitecture(&fields);
  const std::string pooling = fields.Text("classifier_pooling", std::string("cls"));
  const bool decoder_bias = fields.Bool("decoder_bias", true);
  if (architecture == "ModernBertForMaskedLM") {
    c["task"] = "masked_lm";
    c["lm_head_transform"] = true;
    c["lm_head_bias"] = decoder_bias;
    config->Require("tie_word_embeddings", true);
    AddTransform(config, sizes, norm_bias, "lm_head.dense", "lm_head.norm", translation);
    rules.push_back({"decoder.bias", "lm_head.bias"});
    rules.push_back({"decoder.weight", "lm_head.weight"});
  } else if (architecture == "ModernBertForSequenceClassification") {
    c["task"] = "classification";
    c["num_labels"] = LabelCount(&fields);
    if (pooling != "cls" && pooling != "mean") {
      fields.FailAt("classifier_pooling", ValueText(Json(pooling)) + " is not supported, expected \"cls\" or \"mean\"");
    }
    c["pooling"] = pooling == "cls" ? "first" : "mean";
    c["classifier_transform"] = c["classifier_norm"] = true;
    fields.Find("tie_word_embeddings");
    AddTransform(config, sizes, norm_bias, "classifier.dense", "classifier.norm", translation);
    AddBoth("classifier", "classifier", &rules);
    rules.push_back({"decoder.", ""});  // left of another head
  } else {
    fields.FailAt("architectures",
                  ValueText(Json(architecture)) +
                      " is not supported, expected \"ModernBertForMaskedLM\" or \"ModernBertForSequenceClassification\"");
  }
  for (TensorRule& rule : rules) rule.outside_base = true;
}

}  // namespace

Translation TranslateModernBert(ForeignConfig* config, const FamilyOptions& /*options*/) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : {"bos_token_id", "eos_token_id", "cls_token_id", "mlp_dropout", "embedding_dropout",
                          "initializer_cutoff_factor", "deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index",
                          "reference_compile", "repad_logits_with_grad", "layer_norm_eps", "position_embedding_type"}) {
    fields.Find(key);  // the last two are left of BERT
  }
  const uint32_t hidden = fields.Size("hidden_size", 768), layers = fields.Size("num_hidden_layers", 22, kMostLayers);
  const Sizes sizes = {hidden, layers, fields.Size("intermediate_size", 1152)};
  const uint32_t every = fields.Size("global_attn_every_n_layers", 3), window = fields.Size("local_attention", 128);
  config->SplitRopeOfKinds("local_rope_theta");
  float theta = fields.PositiveNumber("global_rope_theta", 160000.0f);
  if (const Json* newer = fields.Find("rope_parameters")) {
    const std::string where = fields.where() + ": rope_parameters";
    const Json present = WithoutNulls(*newer, where);
    Fields rope(present, where);
    if (rope.Text("rope_type", "default") != "default") rope.FailAt("rope_type", "only \"default\" is supported");
    theta = rope.PositiveNumber("rope_theta", theta);
    rope.Finish();
  }
  const bool local_angles = fields.Has("local_rope_theta") || !config->IsNull("local_rope_theta");
  const float local_theta = local_angles ? fields.PositiveNumber("local_rope_theta", 10000.0f) : theta;
  const uint32_t positions = fields.Size("max_position_embeddings", 8192);
  const bool norm_bias = fields.Bool("norm_bias", false);
  Json attention = Json::array(), rope = Json::array();
  const std::vector<bool> windowed =
      WindowedLayers(&fields, layers, /*has_window=*/true, [every](uint32_t layer) { return layer % every != 0; });
  for (const bool has_window : windowed) {
    const bool global = !has_window;
    attention.push_back(global ? Json{{"system", "softmax"}, {"max_context", positions}}
                               : Json{{"system", "sliding_window"}, {"window", window}});
    rope.push_back(global ? Json() : Json(local_theta));
  }
  translation.prefix = "model.";
  translation.config = {{"vocab_size", fields.Size("vocab_size", 50368)},
                        {"hidden_size", hidden},
                        {"num_layers", layers},
                        {"num_heads", fields.Size("num_attention_heads", 12)},
                        {"intermediate_size", sizes.inner},
                        {"hidden_act", config->Activation("hidden_activation", "gelu", /*gated=*/true)},
                        {"norm", "layernorm"},
                        {"norm_eps", fields.NonNegativeNumber("norm_eps", 1e-5f)},
                        {"first_norm", false},
                        {"embedding_norm", true},
                        {"attention_bias", fields.Bool("attention_bias", false)},
                        {"mlp_bias", fields.Bool("mlp_bias", false)},
                        {"position_embedding", "rope"},
                        {"rope_theta", theta},
                        {"layer_rope", rope},
                        {"attention", attention}};
  AddHead(config, sizes, norm_bias, &translation);
  AddRules(sizes, norm_bias, &translation.rules);
  return translation;
}

}  // namespace tarn::convert
