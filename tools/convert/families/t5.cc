// t5 (its version 1.1 and flan-t5, too), mt5 and umt5 (whose layers all have such numbers): encoder and decoder with RMS norms, no
// biases, and learned numbers that are added to attention logits by distance; the first layer has them for all layers of its side.
#include <cmath>
#include <string>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

// feed_forward_proj, the activation that follows from it, and the MLP of tarn.
struct FeedForward {
  const char *name, *activation, *act;
  bool gated;
};
constexpr FeedForward kFeedForwards[] = {{"relu", "relu", "relu", false},
                                         {"gelu", "gelu", "gelu", false},
                                         {"gelu_new", "gelu_new", "gelu_tanh", false},
                                         {"silu", "silu", "silu", false},
                                         {"gated-gelu", "gelu_new", "geglu_tanh", true},
                                         {"gated-silu", "silu", "swiglu", true}};

FeedForward ReadFeedForward(ForeignConfig* config, const char* fallback) {
  Fields& fields = config->fields();
  const std::string name = fields.Text("feed_forward_proj", std::string(fallback));
  std::string known;
  for (const FeedForward& kind : kFeedForwards) {
    if (name == kind.name) {
      config->Require("dense_act_fn", kind.activation);
      config->Require("is_gated_act", kind.gated);
      return kind;
    }
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  fields.FailAt("feed_forward_proj", ValueText(Json(name)) + " is not supported, expected one of " + known);
}

void AddAttention(const std::string& from, const std::string& to, std::vector<TensorRule>* rules) {
  for (const std::string p : {"q", "k", "v", "o"}) rules->push_back({from + p + ".weight", to + p + "_proj.weight"});
}

void AddSide(const std::string& side, bool gated, bool by_layer, std::vector<TensorRule>* rules) {
  const std::string from = side + ".block.*.layer.", to = "model." + side + ".layers.*.";
  const bool decodes = side == "decoder";
  const std::string mlp = from + (decodes ? "2." : "1.");
  AddAttention(from + "0.SelfAttention.", to + "attn.", rules);
  rules->push_back({from + "0.layer_norm.weight", to + "attn_norm.weight"});
  if (decodes) {
    AddAttention(from + "1.EncDecAttention.", to + "cross_attn.", rules);
    rules->push_back({from + "1.layer_norm.weight", to + "cross_attn_norm.weight"});
  }
  rules->push_back(
      {mlp + "DenseReluDense." + (gated ? "wi_0" : "wi") + ".weight", to + "mlp." + (gated ? "gate" : "up") + "_proj.weight"});
  if (gated) rules->push_back({mlp + "DenseReluDense.wi_1.weight", to + "mlp.up_proj.weight"});
  rules->push_back({mlp + "DenseReluDense.wo.weight", to + "mlp.down_proj.weight"});
  rules->push_back({mlp + "layer_norm.weight", to + "mlp_norm.weight"});
  const std::string distances = ".SelfAttention.relative_attention_bias.weight";
  if (by_layer) {
    rules->push_back({side + ".block.*.layer.0" + distances, to + "attn.distance_bias"});
  } else {
    rules->push_back({side + ".block.0.layer.0" + distances, "model." + side + ".distance_bias"});
  }
  rules->push_back({side + ".final_layer_norm.weight", "model." + side + ".norm.weight"});
  TensorRule table{side + ".embed_tokens.weight", ""};
  table.same_as = "shared.weight";
  rules->push_back(table);
}

// How the kinds differ: the table of distances, defaults, and what transformers 5 makes of them.
struct T5Kind {
  bool by_layer;  // every layer has a table of its own
  const char* feed_forward;
  bool tied;
  bool scaled_since_5;  // what the head reads, by scale_decoder_outputs
};

// What the head is and reads. Older versions scale what a head reads that is the table of the embeddings. transformers 5 writes
// that every head is that table; one that is not is among the tensors.
struct T5Head {
  bool tied, scaled, by_tensor;
};

T5Head ReadHead(ForeignConfig* config, const T5Kind& kind) {
  Fields& fields = config->fields();
  const bool tied = fields.Bool("tie_word_embeddings", kind.tied);
  const bool newer = config->MajorVersion() >= 5;
  const bool scaled = kind.scaled_since_5 ? fields.Bool("scale_decoder_outputs", tied) : tied && !newer;
  return {tied, scaled, newer};
}

Translation TranslateBoth(ForeignConfig* config, const FamilyOptions& options, const T5Kind& kind) {
  Translation translation;
  translation.scale = 1;
  Fields& fields = config->fields();
  for (const char* key : {"dropout_rate", "initializer_factor"}) fields.Find(key);
  const uint32_t vocab = fields.Size("vocab_size"), width = fields.Size("d_model"),
                 layers = fields.Size("num_layers", std::nullopt, kMostLayers);
  // Positions are distances, which have no end: this bounds memory.
  const uint32_t given = fields.Size("n_positions", 512), positions = options.max_context.value_or(given);
  const FeedForward mlp = ReadFeedForward(config, kind.feed_forward);
  const T5Head head = ReadHead(config, kind);
  if (head.by_tensor) translation.own_head = "lm_head.weight";
  const Json distances = {{"distance_bias", kind.by_layer ? "layer" : "model"},
                          {"distance_buckets", fields.Size("relative_attention_num_buckets", 32)},
                          {"distance_max", fields.Size("relative_attention_max_distance", 128)}};
  const Json source = {{"system", "softmax"}, {"max_context", positions}, {"scale", 1}};
  Json encoder = source, decoder = FullAttention(given, options, &translation);
  encoder.update(distances);
  decoder.update(distances);
  translation.config = {{"task", "seq2seq"},
                        {"vocab_size", vocab},
                        {"hidden_size", width},
                        {"encoder_layers", layers},
                        {"decoder_layers", fields.Size("num_decoder_layers", layers, kMostLayers)},
                        {"num_heads", fields.Size("num_heads")},
                        {"head_dim", fields.Size("d_kv")},
                        {"intermediate_size", fields.Size("d_ff")},
                        {"hidden_act", mlp.act},
                        {"norm", "rmsnorm"},
                        {"norm_eps", fields.NonNegativeNumber("layer_norm_epsilon", 1e-6f)},
                        {"share_embeddings", true},
                        {"tie_word_embeddings", head.tied},
                        {"encoder_attention", encoder},
                        {"decoder_attention", decoder},
                        {"cross_attention", source}};
  config->EndTokens(vocab, &translation.config);
  // Generation begins with this token.
  translation.config["bos_token_id"] = fields.Integer("decoder_start_token_id", 0, vocab - 1, 0);
  std::vector<TensorRule>& rules = translation.rules;
  rules.push_back({"shared.weight", "model.embeddings.weight"});
  rules.push_back({"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", ""});  // of older versions; not used
  for (const char* side : {"encoder", "decoder"}) AddSide(side, mlp.gated, kind.by_layer, &rules);
  // The norm before the head is scaled.
  if (head.scaled) Fold("model.decoder.norm.weight", static_cast<float>(1 / std::sqrt(static_cast<double>(width))), 0, &rules);
  return translation;
}

}  // namespace

Translation TranslateT5(ForeignConfig* config, const FamilyOptions& options) {
  return TranslateBoth(config, options, {false, "relu", true, true});
}

Translation TranslateMt5(ForeignConfig* config, const FamilyOptions& options) {
  return TranslateBoth(config, options, {false, "gated-gelu", false, false});
}

Translation TranslateUmt5(ForeignConfig* config, const FamilyOptions& options) {
  config->fields().Find("scalable_attention");  // nothing reads it
  return TranslateBoth(config, options, {true, "gated-gelu", true, true});
}

}  // namespace tarn::convert
