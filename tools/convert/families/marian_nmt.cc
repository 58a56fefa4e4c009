// Marian's own models (marian_file.h), whose options stand in the file: a transformer encoder, and a decoder of self attention or
// of SSRUs, as the students of Firefox Translations have. Norms stand behind each part; positions are added to scaled embeddings.
#include <string>
#include <utility>

#include "tools/convert/families/decoder.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kMostTokens = 1024;  // of a source; of a target, where the decoder keeps it
constexpr uint32_t kMostStackLayers = 256;
constexpr float kNever = -1e9f;  // the logit of the token that a target begins with, which no text has

// Options that say nothing about a forward pass, or are of other models than these.
constexpr const char* kUnused[] = {"bert-train-type-embeddings",
                                   "bert-type-vocab-size",
                                   "dec-cell-base-depth",
                                   "dec-cell-high-depth",
                                   "dim-rnn",
                                   "enc-cell",
                                   "enc-cell-depth",
                                   "enc-type",
                                   "factors-combine",
                                   "factors-dim-emb",
                                   "lemma-dependency",
                                   "separator-symbol",
                                   "skip",
                                   "transformer-aan-activation",
                                   "transformer-aan-depth",
                                   "transformer-aan-nogate",
                                   "transformer-alibi-trainable",
                                   "transformer-depth-scaling",
                                   "transformer-dim-aan",
                                   "transformer-guided-alignment-layer",
                                   "ulr-dim-emb",
                                   "ulr-trainable-transformation",
                                   "version"};

// Options that would change the arithmetic.
void RequireDefaults(ForeignConfig* config) {
  config->Require("type", "transformer");
  config->Require("lemma-dim-emb", 0u);
  config->Require("special-vocab", Json::array());
  config->Require("transformer-attention-mask", "default");
  config->Require("transformer-preprocess", "");
  config->Require("transformer-ffn-depth", 2u);
  for (const char* key : {"layer-normalization", "right-left", "transformer-alibi-shift", "transformer-disable-position-embeddings",
                          "transformer-no-affine", "transformer-no-bias", "transformer-pool", "transformer-rnn-projection",
                          "transformer-train-position-embeddings", "transformer-train-positions", "ulr"}) {
    config->Require(key, false);
  }
  const Json* const inputs = config->fields().Find("input-types");
  if (inputs == nullptr || *inputs == Json::array()) return;
  if (*inputs != Json::array({"sequence", "sequence"})) config->Require("input-types", Json::array());
}

// Letters of what follows a part, without dropout.
std::string Steps(ForeignConfig* config, const char* key, const char* fallback) {
  std::string steps;
  for (const char step : config->fields().Text(key, std::string(fallback))) {
    if (step != 'd') steps += step;
  }
  return steps;
}

// Whether there is a norm and nothing else, or nothing.
bool IsNorm(ForeignConfig* config, const char* key, const char* fallback) {
  const std::string steps = Steps(config, key, fallback);
  if (steps.empty() || steps == "n") return !steps.empty();
  config->fields().FailAt(key, ValueText(Json(steps)) + " without dropout is not supported, expected \"n\" or nothing");
}

const char* NormPositionOf(ForeignConfig* config) {
  const std::string steps = Steps(config, "transformer-postprocess", "dan");
  if (steps == "an") return "post";
  if (steps == "na") return "output";
  config->fields().FailAt("transformer-postprocess",
                          ValueText(Json(steps)) + " without dropout is not supported, expected \"an\" or \"na\"");
}

class Rules {
 public:
  explicit Rules(std::vector<TensorRule>* rules) : rules_(*rules) {}

  void Weight(const std::string& from, const std::string& to) { rules_.push_back({from, to + ".weight", /*transposed=*/true}); }
  void Flat(const std::string& from, const std::string& to) {
    TensorRule rule{from, to};
    rule.flat = true;  // Marian's vectors are rows
    rules_.push_back(rule);
  }
  // `number`: behind the letters W and b.
  void Dense(const std::string& prefix, const std::string& number, const std::string& to) {
    Weight(prefix + "_W" + number, to);
    Flat(prefix + "_b" + number, to + ".bias");
  }
  void Norm(const std::string& prefix, const std::string& to, const char* ending = "") {
    Flat(prefix + "_ln_scale" + ending, to + ".weight");
    Flat(prefix + "_ln_bias" + ending, to + ".bias");
  }
  void Attention(const std::string& from, const std::string& to) {
    for (const std::string p : {"q", "k", "v", "o"}) Dense(from, p, to + "." + p + "_proj");
    Norm(from + "_Wo", to + "_norm");
  }
  void Mlp(const std::string& from, const std::string& to) {
    Dense(from, "1", to + ".up_proj");
    Dense(from, "2", to + ".down_proj");
    Norm(from + "_ffn", to + "_norm");
  }
  void Ssru(const std::string& from, const std::string& to) {
    Weight(from + "_W", to + ".v_proj");
    Dense(from, "f", to + ".g_proj");
    Norm(from + "_ffn", to + "_norm");
  }
  // A table, or the head, with a row for the token that a target begins with.
  void Table(const std::string& from, const std::string& to, bool more, bool transposed = false) {
    TensorRule rule{from, to + ".weight", transposed};
    rule.more_rows = more ? 1 : 0;
    rules_.push_back(rule);
  }

 private:
  std::vector<TensorRule>& rules_;
};

// The layer whose tensors each layer of the decoder has: its own number, or that of transformer-tied-layers. From 1 on.
std::vector<uint64_t> LayersOfDecoder(ForeignConfig* config, uint32_t layers) {
  const Json* const tied = config->fields().Find("transformer-tied-layers");
  std::vector<uint64_t> numbers;
  if (tied == nullptr || *tied == Json::array()) {
    for (uint32_t i = 1; i <= layers; ++i) numbers.push_back(i);
    return numbers;
  }
  const std::string expected = ", a list of dec-depth = " + std::to_string(layers) + " numbers of layers expected";
  if (!tied->is_array() || tied->size() != layers) config->fields().FailAt("transformer-tied-layers", ValueText(*tied) + expected);
  for (const Json& number : *tied) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() < 1 || number.get<uint64_t>() > layers) {
      config->fields().FailAt("transformer-tied-layers", ValueText(number) + expected);
    }
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

void AddLayers(const Json& ours, bool ssru, const std::vector<uint64_t>& decoder, std::vector<TensorRule>* list) {
  Rules rules(list);
  for (uint32_t i = 0; i < ours["encoder_layers"].get<uint32_t>(); ++i) {
    const std::string from = "encoder_l" + std::to_string(i + 1), to = "model.encoder.layers." + std::to_string(i);
    rules.Attention(from + "_self", to + ".attn");
    rules.Mlp(from + "_ffn", to + ".mlp");
  }
  for (size_t i = 0; i < decoder.size(); ++i) {
    const std::string from = "decoder_l" + std::to_string(decoder[i]), to = "model.decoder.layers." + std::to_string(i);
    if (ssru) {
      rules.Ssru(from + "_rnn", to + ".attn");
    } else {
      rules.Attention(from + "_self", to + ".attn");
    }
    rules.Attention(from + "_context", to + ".cross_attn");
    rules.Mlp(from + "_ffn", to + ".mlp");
  }
  for (const std::string side : {"encoder", "decoder"}) {
    rules.Norm(side + "_emb", "model." + side + ".embedding_norm", "_pre");
    rules.Norm(side + "_top", "model." + side + ".norm");
  }
}

// Tables and head. A target begins with a row of zeros, which no token of Marian has: a token behind them stands for it.
void AddVocabularies(ForeignConfig* config, Translation* translation) {
  Fields& fields = config->fields();
  Json& ours = translation->config;
  const Json* const sizes = fields.Find("dim-vocabs");
  if (sizes == nullptr) fields.FailMissing("dim-vocabs", "a list of two sizes");
  uint64_t counts[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const Json size = sizes->is_array() && sizes->size() == 2 ? (*sizes)[i] : Json();
    if (size.is_number_unsigned()) counts[i] = size.get<uint64_t>();
    if (counts[i] == 0 || counts[i] >= Fields::kMaxSize) {
      fields.FailAt("dim-vocabs",
                    ValueText(*sizes) + " is not a list of two sizes from 1 to " + std::to_string(Fields::kMaxSize - 1));
    }
  }
  const bool all = fields.Bool("tied-embeddings-all", false), source = fields.Bool("tied-embeddings-src", false) || all;
  const bool head = fields.Bool("tied-embeddings", false) || all;
  if (source && counts[0] != counts[1]) {
    fields.FailAt("dim-vocabs", ValueText(*sizes) + " are not the same, and source and target have one table");
  }
  ours["vocab_size"] = counts[1] + 1;
  ours["source_vocab_size"] = source ? counts[1] + 1 : counts[0];
  ours["share_embeddings"] = source;
  ours["tie_word_embeddings"] = head;
  ours["lm_head_bias"] = true;
  ours["bos_token_id"] = counts[1];
  ours["eos_token_id"] = 0;
  Rules rules(&translation->rules);
  if (source) {
    rules.Table("Wemb", "model.embeddings", /*more=*/true);
  } else {
    rules.Table("encoder_Wemb", "model.encoder.embeddings", /*more=*/false);
    rules.Table("decoder_Wemb", "model.decoder.embeddings", /*more=*/true);
  }
  if (!head) {
    rules.Table("decoder_ff_logit_out_Wt", "lm_head", /*more=*/true);
    rules.Table("decoder_ff_logit_out_W", "lm_head", /*more=*/true, /*transposed=*/true);  // of older versions
  }
  TensorRule bias{"decoder_ff_logit_out_b", "lm_head.bias"};
  bias.flat = true;
  bias.more_rows = 1;
  bias.more = kNever;
  if (fields.Bool("output-omit-bias", false)) {
    bias.from = "";
    bias.zeros = {counts[1]};
  }
  translation->rules.push_back(bias);
}

}  // namespace

Translation TranslateMarianNmt(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  translation.marian_tokenizer = true;
  Fields& fields = config->fields();
  for (const char* key : kUnused) fields.Find(key);
  RequireDefaults(config);
  const uint32_t heads = fields.Size("transformer-heads", 8), inner = fields.Size("transformer-dim-ffn", 2048);
  for (const auto& [key, same] : {std::pair{"transformer-decoder-dim-ffn", inner}, {"transformer-decoder-ffn-depth", 2u}}) {
    if (fields.Integer(key, 0, Fields::kMaxSize, 0) != 0) config->Require(key, same);
  }
  constexpr Choice<bool> kDecoders[] = {{"self-attention", false}, {"rnn", true}};
  const bool ssru = fields.OneOf<bool>("transformer-decoder-autoreg", kDecoders, false);
  if (ssru && fields.Text("dec-cell") != "ssru") config->Require("dec-cell", "ssru");
  fields.Find("dec-cell");
  constexpr Choice<const char*> kActivations[] = {{"relu", "relu"}, {"swish", "silu"}};
  const char* const activation = fields.OneOf<const char*>("transformer-ffn-activation", kActivations, "silu");
  const bool projects = !fields.Bool("transformer-no-projection", false);
  const uint32_t layers = fields.Size("dec-depth", std::nullopt, kMostStackLayers);
  const Json attention = {{"system", "softmax"}, {"max_context", kMostTokens}};
  translation.config = {{"task", "seq2seq"},
                        {"hidden_size", fields.Size("dim-emb")},
                        {"encoder_layers", fields.Size("enc-depth", std::nullopt, kMostStackLayers)},
                        {"decoder_layers", layers},
                        {"num_heads", heads},
                        {"intermediate_size", inner},
                        {"hidden_act", activation},
                        {"norm", "layernorm"},
                        {"norm_eps", 1e-6},
                        {"norm_position", NormPositionOf(config)},
                        {"embedding_norm", IsNorm(config, "transformer-postprocess-emb", "d")},
                        {"final_norm", IsNorm(config, "transformer-postprocess-top", "")},
                        {"attention_bias", true},
                        {"mlp_bias", true},
                        {"output_projection", projects},
                        {"position_embedding", "sinusoidal"},
                        {"scale_embeddings", true},
                        {"encoder_attention", attention},
                        {"cross_attention", attention}};
  Json& ours = translation.config;
  if (ssru) {
    ours["decoder_attention"] = {{"system", "diagonal_recurrence"}, {"gate_bias", true}};
    ours["decoder_block"] = {{"num_heads", heads}, {"output_activation", "relu"}, {"output_projection", false}};
  } else {
    ours["decoder_attention"] = FullAttention(kMostTokens, options, &translation);
  }
  AddLayers(ours, ssru, LayersOfDecoder(config, layers), &translation.rules);
  AddVocabularies(config, &translation);
  return translation;
}

}  // namespace tarn::convert
