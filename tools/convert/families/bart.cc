// bart, marian and m2m_100 (NLLB, too): encoder and decoder with layer norms and biases everywhere, which share one table of
// embeddings.
#include <cmath>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kPositionOffset = 2;  // the first position is this row, or this angle

void AddSide(const std::string& side, std::vector<TensorRule>* rules) {
  const std::string from = side + ".layers.*.", to = "model." + side + ".layers.*.";
  for (const auto& [theirs, ours] :
       {std::pair{"q_proj", "q_proj"}, {"k_proj", "k_proj"}, {"v_proj", "v_proj"}, {"out_proj", "o_proj"}}) {
    AddBoth(from + "self_attn." + theirs, to + "attn." + ours, rules);
    if (side == "decoder") AddBoth(from + "encoder_attn." + theirs, to + "cross_attn." + ours, rules);
  }
  AddBoth(from + "self_attn_layer_norm", to + "attn_norm", rules);
  if (side == "decoder") AddBoth(from + "encoder_attn_layer_norm", to + "cross_attn_norm", rules);
  AddBoth(from + "final_layer_norm", to + "mlp_norm", rules);
  AddBoth(from + "fc1", to + "mlp.up_proj", rules);
  AddBoth(from + "fc2", to + "mlp.down_proj", rules);
  // The shared table once more, in older files.
  TensorRule table{side + ".embed_tokens.weight", ""};
  table.same_as = "shared.weight";
  rules->push_back(table);
}

// What both have. The parts of a layer have the same sizes on both sides, or else are refused.
Translation TranslateBoth(ForeignConfig* config, const FamilyOptions& options, const char* activation) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : {"num_hidden_layers", "encoder_layerdrop", "decoder_layerdrop", "classif_dropout", "normalize_before",
                          "normalize_embedding", "add_final_layer_norm", "add_bias_logits"}) {
    fields.Find(key);  // they repeat others, or stand for what was removed from the library
  }
  const uint32_t vocab = fields.Size("vocab_size", 50265), positions = fields.Size("max_position_embeddings", 1024);
  const uint32_t heads = fields.Size("encoder_attention_heads", 16), inner = fields.Size("encoder_ffn_dim", 4096);
  config->Require("decoder_attention_heads", heads);
  config->Require("decoder_ffn_dim", inner);
  const Json attention = {{"system", "softmax"}, {"max_context", positions}};
  translation.prefix = "model.";
  translation.config = {{"task", "seq2seq"},
                        {"vocab_size", vocab},
                        {"hidden_size", fields.Size("d_model", 1024)},
                        {"encoder_layers", fields.Size("encoder_layers", 12, kMostLayers)},
                        {"decoder_layers", fields.Size("decoder_layers", 12, kMostLayers)},
                        {"num_heads", heads},
                        {"intermediate_size", inner},
                        {"hidden_act", config->Activation("activation_function", activation, /*gated=*/false)},
                        {"norm", "layernorm"},
                        {"norm_eps", 1e-5},
                        {"attention_bias", true},
                        {"mlp_bias", true},
                        {"share_embeddings", true},
                        {"encoder_attention", attention},
                        {"decoder_attention", FullAttention(positions, options, &translation)},
                        {"cross_attention", attention}};
  config->Require("tie_word_embeddings", true);
  config->EndTokens(vocab, &translation.config);
  // Generation begins with this token.
  translation.config["bos_token_id"] = fields.Integer("decoder_start_token_id", 0, vocab - 1, 2);
  translation.rules.push_back({"shared.weight", "model.embeddings.weight"});
  AddSide("encoder", &translation.rules);
  AddSide("decoder", &translation.rules);
  return translation;
}

// final_logits_bias [1, vocabulary], which is no parameter.
void AddLogitsBias(Translation* translation) {
  translation->config["lm_head_bias"] = true;
  TensorRule bias{"final_logits_bias", "lm_head.bias"};
  bias.flat = bias.outside_base = true;
  bias.zeros = {translation->config["vocab_size"].get<uint64_t>()};  // checkpoints of the base model lack it
  translation->rules.push_back(bias);
}

}  // namespace

Translation TranslateBart(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation = TranslateBoth(config, options, "gelu");
  Json& c = translation.config;
  c["norm_position"] = "post";
  c["final_norm"] = false;
  c["embedding_norm"] = true;
  c["scale_embeddings"] = config->fields().Bool("scale_embedding", false);
  c["position_embedding"] = "learned";
  c["max_positions"] = config->fields().Size("max_position_embeddings", 1024);
  for (const std::string side : {"encoder", "decoder"}) {
    const std::string to = "model." + side;
    translation.rules.push_back({side + ".embed_positions.weight", to + ".position_embeddings.weight", false, kPositionOffset});
    AddBoth(side + ".layernorm_embedding", to + ".embedding_norm", &translation.rules);
  }
  AddLogitsBias(&translation);
  return translation;
}

// Sines and cosines of p * 10000^(-2i / width), with norms behind each part.
Translation TranslateMarian(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation = TranslateBoth(config, options, "gelu");
  Json& c = translation.config;
  config->Require("share_encoder_decoder_embeddings", true);
  config->Require("decoder_vocab_size", c["vocab_size"]);
  c["norm_position"] = "post";
  c["final_norm"] = false;
  c["scale_embeddings"] = config->fields().Bool("scale_embedding", false);
  c["position_embedding"] = "sinusoidal";
  const auto width = c["hidden_size"].get<uint32_t>();
  for (uint32_t i = 0; i < width / 2; ++i) c["sinusoid_frequencies"].push_back(std::pow(10000.0, -2.0 * i / width));
  for (const std::string side : {"encoder", "decoder"}) translation.rules.push_back({side + ".embed_positions.weight", ""});
  AddLogitsBias(&translation);
  return translation;
}

Translation TranslateM2m100(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation = TranslateBoth(config, options, "relu");
  Json& c = translation.config;
  config->Require("pad_token_id", kPositionOffset - 1);  // positions begin behind it
  c["scale_embeddings"] = config->fields().Bool("scale_embedding", true);
  c["position_embedding"] = "sinusoidal";
  c["first_position"] = kPositionOffset;
  for (const std::string side : {"encoder", "decoder"}) {
    translation.rules.push_back({side + ".embed_positions.weights", ""});  // of older versions; they follow from the position
    AddBoth(side + ".layer_norm", "model." + side + ".norm", &translation.rules);
  }
  return translation;
}

}  // namespace tarn::convert
