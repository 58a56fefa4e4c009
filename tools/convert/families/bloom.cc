// bloom: ALiBi, which takes a slope of the head times the distance from logits; q, k and v of a head stand together in one matrix.
#include <cmath>
#include <memory>
#include <string>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {
namespace {

// A geometric series for the largest power of two of heads; the others take every second number of the series for twice as many.
Json Slopes(uint32_t heads) {
  uint32_t power = 1;
  while (power <= heads / 2) power *= 2;
  Json slopes = Json::array();
  for (uint32_t i = 1; i <= power; ++i) slopes.push_back(std::exp2(-8.0 * i / power));
  for (uint32_t i = 1; slopes.size() < heads; i += 2) slopes.push_back(std::exp2(-4.0 * i / power));
  return slopes;
}

// Rows of q (part 0), k (1) or v (2).
std::shared_ptr<const std::vector<uint32_t>> PartOrder(uint32_t heads, uint32_t head_dim, uint32_t part) {
  auto order = std::make_shared<std::vector<uint32_t>>();
  for (uint32_t head = 0; head < heads; ++head) {
    for (uint32_t row = 0; row < head_dim; ++row) order->push_back((3 * head + part) * head_dim + row);
  }
  return order;
}

void AddRules(uint32_t heads, uint32_t head_dim, std::vector<TensorRule>* rules) {
  rules->push_back({"word_embeddings.weight", "model.embeddings.weight"});
  AddBoth("word_embeddings_layernorm", "model.embedding_norm", rules);
  AddBoth("ln_f", "model.norm", rules);
  const std::string from = "h.*.", to = "model.layers.*.";
  for (const auto& [theirs, ours] : {std::pair{"input_layernorm", "attn_norm"},
                                     {"post_attention_layernorm", "mlp_norm"},
                                     {"self_attention.dense", "attn.o_proj"},
                                     {"mlp.dense_h_to_4h", "mlp.up_proj"},
                                     {"mlp.dense_4h_to_h", "mlp.down_proj"}}) {
    AddBoth(from + theirs, to + ours, rules);
  }
  uint32_t part = 0;
  for (const std::string p : {"q", "k", "v"}) {
    const auto order = PartOrder(heads, head_dim, part++);
    AddBoth(from + "self_attention.query_key_value", to + "attn." + p + "_proj", rules);
    for (TensorRule* rule : {&rules->back(), &rules->back() - 1}) {
      rule->order = order;
      rule->all_rows = 3 * heads * head_dim;
    }
  }
}

// A field under its name or an older one.
uint32_t SizeOf(Fields* fields, const char* key, const char* older, uint32_t fallback) {
  const uint32_t old = fields->Size(older, fallback);
  return fields->Size(key, old);
}

}  // namespace

Translation TranslateBloom(ForeignConfig* config, const FamilyOptions& options) {
  Translation translation;
  Fields& fields = config->fields();
  for (const char* key : {"slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion", "bias_dropout_fusion",
                          "skip_bias_add", "skip_bias_add_qkv", "offset_alibi", "unk_token_id"}) {
    fields.Find(key);  // how and in which type the same is computed
  }
  config->Require("apply_residual_connection_post_layernorm", false);
  const uint32_t hidden = SizeOf(&fields, "hidden_size", "n_embed", 64),
                 heads = SizeOf(&fields, "n_head", "num_attention_heads", 8);
  const uint32_t vocab = fields.Size("vocab_size", 250880);
  if (hidden % heads != 0) fields.FailAt("n_head", std::to_string(heads) + " does not divide " + std::to_string(hidden));
  config->Require("n_inner", 4 * hidden);
  // Positions are distances, which have no end: this bounds memory.
  Json attention = FullAttention(fields.Size("seq_length", 2048), options, &translation);
  attention["distance_slopes"] = Slopes(heads);
  translation.prefix = "transformer.";
  translation.config = {{"vocab_size", vocab},
                        {"hidden_size", hidden},
                        {"num_layers", SizeOf(&fields, "n_layer", "num_hidden_layers", 2)},
                        {"num_heads", heads},
                        {"intermediate_size", 4 * hidden},
                        {"hidden_act", "gelu_tanh"},
                        {"norm", "layernorm"},
                        {"norm_eps", fields.PositiveNumber("layer_norm_epsilon", 1e-5f)},
                        {"embedding_norm", true},
                        {"attention_bias", true},
                        {"mlp_bias", true},
                        {"attention", attention},
                        {"tie_word_embeddings", fields.Bool("tie_word_embeddings", true)}};
  config->EndTokens(vocab, &translation.config);
  AddRules(heads, hidden / heads, &translation.rules);
  return translation;
}

}  // namespace tarn::convert
