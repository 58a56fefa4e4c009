// bert, distilbert, longformer, roberta and xlm-roberta: encoders with norms behind each part, for masked language models and
// classifiers. The row of token type 0 is added to the table of positions: a text of one part has no other type.
#include "tools/convert/families/decoder.h"
#include "tools/convert/families/encoder_head.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Names of fields, and of the tensors of a layer.
struct EncoderNames {
  const char *hidden, *layers, *heads, *inner, *activation;
  const char *layer, *q, *k, *v, *output, *attention_norm, *up, *down, *mlp_norm;
  bool token_types;
};

constexpr EncoderNames kBertNames = {"hidden_size",
                                     "num_hidden_layers",
                                     "num_attention_heads",
                                     "intermediate_size",
                                     "hidden_act",
                                     "encoder.layer.*.",
                                     "attention.self.query",
                                     "attention.self.key",
                                     "attention.self.value",
                                     "attention.output.dense",
                                     "attention.output.LayerNorm",
                                     "intermediate.dense",
                                     "output.dense",
                                     "output.LayerNorm",
                                     true};
constexpr EncoderNames kDistilBertNames = {"dim",
                                           "n_layers",
                                           "n_heads",
                                           "hidden_dim",
                                           "activation",
                                           "transformer.layer.*.",
                                           "attention.q_lin",
                                           "attention.k_lin",
                                           "attention.v_lin",
                                           "attention.out_lin",
                                           "sa_layer_norm",
                                           "ffn.lin1",
                                           "ffn.lin2",
                                           "output_layer_norm",
                                           false};

// How the kinds of these encoders differ.
struct EncoderKind {
  const EncoderNames& names;
  const char* prefix;     // of the encoder's tensors
  const char* masked_lm;  // names of architectures; pretraining: a masked language model with another head beside
  const char* pretraining;
  const char* classifier;
  uint32_t first_position;  // row of the table of positions
  const char* head_dense;   // of masked language models
  const char* head_norm;
  const char* head_bias;
  const char* pooled;  // of classifiers: the layer before the last, and the last
  const char* labels;
  const char* tied_copies[2];  // of head bias and embeddings, under other names
};

constexpr EncoderKind kBert = {kBertNames,
                               "bert.",
                               "BertForMaskedLM",
                               "BertForPreTraining",
                               "BertForSequenceClassification",
                               0,
                               "cls.predictions.transform.dense",
                               "cls.predictions.transform.LayerNorm",
                               "cls.predictions.bias",
                               "pooler.dense",
                               "classifier",
                               {"cls.predictions.decoder.bias", "cls.predictions.decoder.weight"}};
constexpr EncoderKind kDistilBert = {kDistilBertNames,
                                     "distilbert.",
                                     "DistilBertForMaskedLM",
                                     "DistilBertForMaskedLM",
                                     "DistilBertForSequenceClassification",
                                     0,
                                     "vocab_transform",
                                     "vocab_layer_norm",
                                     "vocab_projector.bias",
                                     "pre_classifier",
                                     "classifier",
                                     {nullptr, "vocab_projector.weight"}};
constexpr EncoderKind kRoberta = {kBertNames,
                                  "roberta.",
                                  "RobertaForMaskedLM",
                                  "RobertaForMaskedLM",
                                  "RobertaForSequenceClassification",
                                  2,
                                  "lm_head.dense",
                                  "lm_head.layer_norm",
                                  "lm_head.bias",
                                  "classifier.dense",
                                  "classifier.out_proj",
                                  {"lm_head.decoder.bias", "lm_head.decoder.weight"}};

constexpr EncoderKind kLongformer = {kBertNames,
                                     "longformer.",
                                     "LongformerForMaskedLM",
                                     "LongformerForMaskedLM",
                                     "LongformerForSequenceClassification",
                                     2,
                                     "lm_head.dense",
                                     "lm_head.layer_norm",
                                     "lm_head.bias",
                                     "classifier.dense",
                                     "classifier.out_proj",
                                     {"lm_head.decoder.bias", "lm_head.decoder.weight"}};

// Norms, also under the names that checkpoints have which began in TensorFlow.
void AddNorm(const std::string& from, const std::string& to, std::vector<TensorRule>* rules) {
  AddBoth(from, to, rules);
  rules->push_back({from + ".gamma", to + ".weight"});
  rules->push_back({from + ".beta", to + ".bias"});
}

// Tensors that a head does not need, with the weight and bias of `names`.
void Drop(const std::vector<std::string>& names, std::vector<TensorRule>* rules) {
  for (const std::string& name : names) {
    rules->push_back({name + ".weight", ""});
    rules->push_back({name + ".bias", ""});
  }
}

// The head; that of XLM-RoBERTa begins with XLM.
std::string Architecture(Fields* fields) {
  const std::string name = HeadArchitecture(fields);
  return name.compare(0, 3, "XLM") == 0 ? name.substr(3) : name;
}

void AddMaskedHead(ForeignConfig* config, const EncoderKind& kind, uint32_t vocab, Translation* translation) {
  Json& c = translation->config;
  std::vector<TensorRule>& rules = translation->rules;
  c["task"] = "masked_lm";
  c["lm_head_transform"] = true;
  c["head_act"] = kind.first_position == 0 ? c["hidden_act"] : Json("gelu");  // roberta's head has its own
  c["lm_head_bias"] = true;
  config->Require("tie_word_embeddings", true);
  const Json* mask = config->fields().Find("mask_token_id");
  if (mask != nullptr && mask->is_number_unsigned() && mask->get<uint64_t>() < vocab) c["mask_token_id"] = *mask;
  AddBoth(kind.head_dense, "lm_head.dense", &rules);
  AddNorm(kind.head_norm, "lm_head.norm", &rules);
  rules.push_back({kind.head_bias, "lm_head.bias"});
  if (kind.tied_copies[0] != nullptr) {
    TensorRule bias_copy{kind.tied_copies[0], ""};
    bias_copy.same_as = kind.head_bias;
    rules.push_back(bias_copy);
  }
  rules.push_back({kind.tied_copies[1], "lm_head.weight"});
  Drop({"cls.seq_relationship", "pooler.dense"}, &rules);
  for (TensorRule& rule : rules) rule.outside_base = rule.from.compare(0, 6, "pooler") != 0;
}

void AddClassifierHead(ForeignConfig* config, const EncoderKind& kind, Translation* translation) {
  Json& c = translation->config;
  c["task"] = "classification";
  config->fields().Find("tie_word_embeddings");  // of another head
  c["num_labels"] = LabelCount(&config->fields());
  c["pooling"] = "first";
  c["classifier_transform"] = true;
  c["head_act"] = kind.names.token_types ? "tanh" : "relu";
  AddBoth(kind.pooled, "classifier.dense", &translation->rules);
  AddBoth(kind.labels, "classifier", &translation->rules);
  for (TensorRule& rule : translation->rules) rule.outside_base = rule.from.compare(0, 6, "pooler") != 0;
  // What is left of other heads.
  Drop({"pooler.dense", "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "vocab_transform", "vocab_layer_norm",
        "vocab_projector"},
       &translation->rules);
  translation->rules.push_back({"lm_head.bias", ""});
}

void AddEncoderRules(const EncoderKind& kind, std::vector<TensorRule>* rules) {
  const EncoderNames& names = kind.names;
  rules->push_back({"embeddings.word_embeddings.weight", "model.embeddings.weight"});
  rules->push_back({"embeddings.position_ids", ""});  // 0, 1, 2, ...
  TensorRule positions{"embeddings.position_embeddings.weight", "model.position_embeddings.weight", false, kind.first_position};
  if (names.token_types) {  // of type 0
    TensorRule type{"embeddings.token_type_embeddings.weight", ""};
    type.rows = 1;
    positions.plus = std::make_shared<const TensorRule>(type);
  }
  rules->push_back(positions);
  rules->push_back({"embeddings.token_type_embeddings.weight", ""});
  AddNorm("embeddings.LayerNorm", "model.embedding_norm", rules);
  const std::string from = names.layer, to = "model.layers.*.";
  for (const auto& [theirs, ours] : {std::pair{names.q, "attn.q_proj"},
                                     {names.k, "attn.k_proj"},
                                     {names.v, "attn.v_proj"},
                                     {names.output, "attn.o_proj"},
                                     {names.up, "mlp.up_proj"},
                                     {names.down, "mlp.down_proj"}}) {
    AddBoth(from + theirs, to + ours, rules);
  }
  AddNorm(from + names.attention_norm, to + "attn_norm", rules);
  AddNorm(from + names.mlp_norm, to + "mlp_norm", rules);
}

Translation TranslateEncoder(ForeignConfig* config, const EncoderKind& kind) {
  Translation translation;
  Fields& fields = config->fields();
  const EncoderNames& names = kind.names;
  config->Require("position_embedding_type", "absolute");
  config->Require("is_decoder", false);
  if (kind.first_position != 0) config->Require("pad_token_id", kind.first_position - 1);  // positions begin behind it
  for (const char* key : {"bos_token_id", "eos_token_id"}) fields.Find(key);               // the tokenizer adds them
  const uint32_t table = fields.Size("max_position_embeddings", 512), vocab = fields.Size("vocab_size", 30522);
  if (table <= kind.first_position) {
    fields.FailAt("max_position_embeddings",
                  std::to_string(table) + ": the first position is row " + std::to_string(kind.first_position));
  }
  fields.Size("type_vocab_size", 2);
  for (const char* key : {"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"}) fields.Find(key);
  const uint32_t positions = table - kind.first_position;
  translation.prefix = kind.prefix;
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", fields.Size(names.hidden, 768)},
                        {"num_layers", fields.Size(names.layers, names.token_types ? 12 : 6, kMostLayers)},
                        {"num_heads", fields.Size(names.heads, 12)},
                        {"intermediate_size", fields.Size(names.inner, 3072)},
                        {"hidden_act", config->Activation(names.activation, "gelu", /*gated=*/false)},
                        {"norm", "layernorm"},
                        {"norm_eps", fields.NonNegativeNumber("layer_norm_eps", 1e-12f)},
                        {"norm_position", "post"},
                        {"final_norm", false},
                        {"embedding_norm", true},
                        {"attention_bias", true},
                        {"mlp_bias", true},
                        {"position_embedding", "learned"},
                        {"max_positions", positions},
                        {"attention", {{"system", "softmax"}, {"max_context", positions}}}};
  const std::string architecture = Architecture(&fields);
  if (architecture == kind.masked_lm || architecture == kind.pretraining) {
    AddMaskedHead(config, kind, vocab, &translation);
  } else if (architecture == kind.classifier) {
    AddClassifierHead(config, kind, &translation);
  } else {
    fields.FailAt("architectures", ValueText(Json(architecture)) + " is not supported, expected \"" + kind.masked_lm + "\" or \"" +
                                       kind.classifier + "\"");
  }
  AddEncoderRules(kind, &translation.rules);
  return translation;
}

// The width of the window of each layer, on both sides together.
std::vector<uint32_t> AttentionWindows(Fields* fields, uint32_t layers) {
  const Json* windows = fields->Find("attention_window", "a number, or a list with one for each layer", "512");
  const Json given = windows == nullptr ? Json(512u) : *windows;
  if (given.is_array() && given.size() != layers) {
    fields->FailAt("attention_window",
                   ValueText(given) + " is not a list of num_hidden_layers = " + std::to_string(layers) + " numbers");
  }
  std::vector<uint32_t> widths;
  for (uint32_t i = 0; i < layers; ++i) {
    const Json& width = given.is_array() ? given[i] : given;
    const bool fits = width.is_number_unsigned() && width.get<uint64_t>() > 0 && width.get<uint64_t>() <= Fields::kMaxSize;
    if (!fits || width.get<uint64_t>() % 2 != 0)
      fields->FailAt("attention_window", ValueText(width) + " is not an even number above 0");
    widths.push_back(width.get<uint32_t>());
  }
  return widths;
}

}  // namespace

// A window in every layer. The first token of a text that is classified is global, with projections of its own; a masked language
// model has no global tokens.
Translation TranslateLongformer(ForeignConfig* config, const FamilyOptions& /*options*/) {
  Translation translation = TranslateEncoder(config, kLongformer);
  Fields& fields = config->fields();
  config->Require("attention_mode", "longformer");
  config->Require("ignore_attention_mask", false);
  for (const char* key : {"sep_token_id", "onnx_export"}) fields.Find(key);
  Json& c = translation.config;
  const bool classifies = c["task"] == "classification";
  Json layers = Json::array();
  for (const uint32_t window : AttentionWindows(&fields, c["num_layers"].get<uint32_t>())) {
    layers.push_back(
        classifies ? Json{{"system", "l2g_window"}, {"window", window}, {"global_positions", {0u}}, {"global_projections", true}}
                   : Json{{"system", "sliding_window"}, {"window", window}});
  }
  c["attention"] = layers;
  const std::string from = std::string(kBertNames.layer) + "attention.self.", to = "model.layers.*.attn.";
  if (classifies) {
    AddBoth(from + "query_global", to + "q_global_proj", &translation.rules);
    AddBoth(from + "key_global", to + "k_global_proj", &translation.rules);
    AddBoth(from + "value_global", to + "v_global_proj", &translation.rules);
  } else {
    Drop({from + "query_global", from + "key_global", from + "value_global"}, &translation.rules);
  }
  return translation;
}

Translation TranslateBert(ForeignConfig* config, const FamilyOptions& /*options*/) { return TranslateEncoder(config, kBert); }

Translation TranslateDistilBert(ForeignConfig* config, const FamilyOptions& /*options*/) {
  return TranslateEncoder(config, kDistilBert);
}

Translation TranslateRoberta(ForeignConfig* config, const FamilyOptions& /*options*/) { return TranslateEncoder(config, kRoberta); }

}  // namespace tarn::convert
