#include "tools/convert/config/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"

namespace tarn::convert {
namespace {

ModelConfig Parse(const Json& config) { return ParseConfig(config.dump(), "config.json"); }

// SmallConfig with a field set, or with one of its attention's fields set.
Json With(const char* key, const Json& value) {
  Json config = SmallConfig();
  config[key] = value;
  return config;
}
Json WithAttention(const char* key, const Json& value) {
  Json config = SmallConfig();
  config["attention"][key] = value;
  return config;
}

TEST(Config, Defaults) {
  const ModelConfig config = Parse(Json::parse(R"({
    "vocab_size": 256, "hidden_size": 12, "num_layers": 3, "num_heads": 3, "intermediate_size": 20, "hidden_act": "gelu",
    "norm": "layernorm", "norm_eps": 1e-6, "tokenizer": "bytes", "attention": {"system": "softmax", "max_context": 9}})"));
  EXPECT_EQ(config.heads.kv_heads(), 3u);
  EXPECT_EQ(config.heads.head_dim(), 4u);
  EXPECT_EQ(config.heads.value_dim(), 4u);
  EXPECT_EQ(config.norm_position, NormPosition::kPre);
  EXPECT_EQ(config.qk_norm, QkNorm::kNone);
  EXPECT_EQ(config.embedding_scale, 1.0f);
  EXPECT_EQ(config.logits_soft_cap, 0.0f);
  EXPECT_TRUE(config.layer_rope.empty() && config.sinusoid_frequencies.empty() && !config.parallel);
  EXPECT_TRUE(config.final_norm && config.tie_word_embeddings);
  EXPECT_FALSE(config.embedding_norm || config.bias.q || config.bias.k || config.bias.v || config.bias.o || config.mlp_bias ||
               config.lm_head_bias);
  EXPECT_EQ(config.position_embedding, PositionEmbedding::kNone);
  EXPECT_FALSE(config.has_rope);
  EXPECT_EQ(config.rope.theta, 10000.0f);
  EXPECT_EQ(config.first_position, 0u);
  EXPECT_EQ(config.decoder.size(), 3u);
}

TEST(Config, ABiasOfSomeProjections) {
  const ModelConfig some = Parse(With("attention_bias", {"o", "q"}));
  EXPECT_TRUE(some.bias.q && some.bias.o);
  EXPECT_FALSE(some.bias.k || some.bias.v);
  const ModelConfig none = Parse(With("attention_bias", Json::array()));
  EXPECT_FALSE(none.bias.q || none.bias.k || none.bias.v || none.bias.o);
  // What is averaged before it is projected has no bias.
  Json means = SmallConfig();
  means["attention"] = Json::parse(
      R"({"system": "compressive_transformer", "segment_len": 5, "mem_len": 7, "cmem_len": 2, "compression_ratio": 3})");
  means["attention_bias"] = {"q", "o"};
  EXPECT_NO_THROW(Parse(means));
  means["attention_bias"] = {"v"};
  EXPECT_TRUE(FailsWith([&] { Parse(means); }, {"compression_ratio: 3 with attention_bias of k or v"}));
}

TEST(Config, RopeBesideAddedPositions) {
  for (const Json& list : {Json{"rope", "sinusoidal"}, Json{"sinusoidal", "rope"}}) {
    const ModelConfig config = Parse(With("position_embedding", list));
    EXPECT_EQ(config.position_embedding, PositionEmbedding::kSinusoidal);
    EXPECT_TRUE(config.has_rope);
  }
  const ModelConfig one = Parse(With("position_embedding", Json::array({"rope"})));
  EXPECT_TRUE(one.has_rope && one.position_embedding == PositionEmbedding::kNone);
  const ModelConfig none = Parse(With("position_embedding", Json::array()));
  EXPECT_TRUE(!none.has_rope && none.position_embedding == PositionEmbedding::kNone);
}

TEST(Config, EndTokensOfALanguageModel) {
  Json config = SmallConfig();
  config.update({{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 0}});
  EXPECT_EQ(Parse(config).bos_token, 1);
  EXPECT_EQ(Parse(config).eos_token, 2);
  EXPECT_EQ(Parse(SmallConfig()).eos_token, -1);
}

TEST(Config, EveryFieldIsRead) {
  const ModelConfig config = Parse(Json::parse(R"({
    "task": "causal_lm", "vocab_size": 300, "hidden_size": 10, "num_layers": 1, "num_heads": 4, "num_kv_heads": 2, "head_dim": 6,
    "value_head_dim": 5, "intermediate_size": 20, "hidden_act": "gelu_tanh", "norm": "layernorm", "norm_eps": 0.5,
    "norm_position": "post", "final_norm": false, "embedding_norm": true, "attention_bias": true, "mlp_bias": true,
    "lm_head_bias": true, "position_embedding": "rope", "rope_theta": 500.0, "max_positions": 7, "first_position": 12345678901,
    "scale_embeddings": true, "tie_word_embeddings": false, "tokenizer": "none", "qk_norm": "full", "logits_soft_cap": 3.5,
    "layer_rope": [7.5],
    "attention": [{"system": "softmax", "max_context": 9}]})"));
  EXPECT_EQ(config.vocab_size, 300u);
  EXPECT_EQ(config.heads.head_dim(), 6u);
  EXPECT_EQ(config.heads.value_dim(), 5u);
  EXPECT_EQ(config.hidden_act, HiddenAct::kGeluTanh);
  EXPECT_EQ(config.norm, format::NormKind::LayerNorm);
  EXPECT_EQ(config.norm_eps, 0.5f);
  EXPECT_EQ(config.norm_position, NormPosition::kPost);
  EXPECT_EQ(config.qk_norm, QkNorm::kFull);
  EXPECT_EQ(config.logits_soft_cap, 3.5f);
  EXPECT_EQ(config.layer_rope.at(0)->theta, 7.5f);
  EXPECT_EQ(config.embedding_scale, std::sqrt(10.0f));
  EXPECT_FALSE(config.final_norm || config.tie_word_embeddings);
  EXPECT_TRUE(config.embedding_norm && config.bias.q && config.bias.k && config.bias.v && config.bias.o && config.mlp_bias &&
              config.lm_head_bias);
  EXPECT_EQ(config.rope.theta, 500.0f);
  EXPECT_EQ(config.first_position, 12345678901u);
}

TEST(Config, RequiredFields) {
  for (const char* key : {"vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size", "hidden_act", "norm",
                          "norm_eps", "tokenizer", "attention"}) {
    Json config = SmallConfig();
    config.erase(key);
    EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"config.json", std::string("\"") + key + "\" is missing"})) << key;
  }
  for (const char* key : {"system", "feature_map", "num_features"}) {
    Json config = SmallConfig();
    config["attention"].erase(key);
    EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"config.json: attention", std::string("\"") + key + "\" is missing"})) << key;
  }
}

TEST(Config, UnknownFieldsAtEveryLevel) {
  EXPECT_TRUE(FailsWith([] { Parse(With("hiden_size", 1)); }, {"config.json: unknown field \"hiden_size\""}));
  EXPECT_TRUE(FailsWith([] { Parse(WithAttention("nu", 1)); }, {"config.json: attention: unknown field \"nu\""}));
  EXPECT_TRUE(FailsWith([] { Parse(With("final_nrom", true)); }, {"unknown field \"final_nrom\" (did you mean final_norm?)"}));
  Json hybrid = SmallConfig();
  hybrid["attention"] = {{{"system", "softmax"}, {"max_context", 4}}, {{"system", "softmax"}, {"max_context", 4}, {"window", 2}}};
  EXPECT_TRUE(FailsWith([&] { Parse(hybrid); }, {"config.json: attention[1]: unknown field \"window\""}));
}

TEST(Config, WrongTypesAndRanges) {
  const struct {
    const char* key;
    Json value;
    std::vector<std::string> parts;
  } cases[] = {
      {"vocab_size", 0, {"vocab_size", "0 is outside 1 .."}},
      {"vocab_size", -5, {"vocab_size", "-5 is outside"}},
      {"vocab_size", 1.5, {"vocab_size", "1.5 is not an integer"}},
      {"vocab_size", "10", {"vocab_size", "\"10\" is not an integer"}},
      {"vocab_size", uint64_t{1} << 40, {"vocab_size", "1099511627776 is outside"}},
      {"num_layers", 100000, {"num_layers", "100000"}},
      {"hidden_size", nullptr, {"hidden_size", "null is not an integer"}},
      {"num_heads", 3, {"num_kv_heads", "2 does not divide num_heads = 3"}},
      {"num_kv_heads", 3, {"num_kv_heads", "3 does not divide num_heads = 4"}},
      {"head_dim", 1 << 17, {"head_dim", "131072 is outside 1 .. 16384"}},
      {"hidden_act", "mish", {"hidden_act", "\"mish\" is not one of swiglu, relu, gelu, gelu_tanh, geglu"}},
      {"hidden_act", "swigul", {"hidden_act", "relu_squared (did you mean swiglu?)"}},
      {"hidden_act", 1, {"hidden_act", "1 is not a string"}},
      {"norm", "batchnorm", {"norm", "\"batchnorm\" is not one of"}},
      {"norm_eps", "small", {"norm_eps", "\"small\" is not a number"}},
      {"norm_eps", -1, {"norm_eps", "negative"}},
      {"norm_eps", 1e300, {"norm_eps", "outside f32"}},
      {"norm_position", "middle", {"norm_position", "\"middle\""}},
      {"final_norm", 1, {"final_norm", "1 is not true or false"}},
      {"attention_bias", "yes", {"attention_bias", "\"yes\" is not true, false, or a list of some of \"q\", \"k\", \"v\", \"o\""}},
      {"attention_bias", {"q", "g"}, {"attention_bias", "\"g\" is not one of \"q\", \"k\", \"v\", \"o\""}},
      {"attention_bias", {true}, {"attention_bias", "true is not one of"}},
      {"attention_bias", {"q", "o", "q"}, {"attention_bias", "\"q\" is there twice"}},
      {"position_embedding", "alibi", {"position_embedding", "\"alibi\""}},
      {"position_embedding", 3, {"position_embedding", "3 is not a string"}},
      {"position_embedding", {"rope", "alibi"}, {"position_embedding", "\"alibi\" is not one of \"none\", \"sinusoidal\""}},
      {"position_embedding", {"rope", "rope"}, {"position_embedding", "\"rope\" is there twice"}},
      {"position_embedding", {"none", "rope"}, {"position_embedding", "is not \"rope\" and one of \"sinusoidal\", \"learned\""}},
      {"position_embedding", {"learned", "sinusoidal"}, {"position_embedding", "is not \"rope\" and one of"}},
      {"position_embedding", "learned", {"\"max_positions\" is missing"}},
      {"rope_theta", 0, {"rope_theta", "above 0"}},
      {"layer_rope", Json::array({1.0}), {"layer_rope", "position_embedding is not \"rope\""}},
      {"parallel", "yes", {"parallel"}},
      {"qk_norm", "heads", {"qk_norm", "is not one of none, head, full"}},
      {"embedding_scale", 0, {"embedding_scale", "above 0"}},
      {"logits_soft_cap", -1, {"logits_soft_cap"}},
      {"sinusoid_frequencies", Json::array({0.5}), {"sinusoid_frequencies", "is not a list of hidden_size / 2"}},
      {"rope_frequencies", Json::array({0.5, 0.25, 0.1}), {"rope_frequencies", "is not a list of head_dim / 2 = 1 numbers"}},
      {"rope_frequencies", "linear", {"rope_frequencies", "\"linear\" is not a list"}},
      {"first_position", -1, {"first_position", "-1"}},
      {"tokenizer", "spm", {"tokenizer", "\"spm\""}},
      {"tokenizer", "bpe", {"tokenizer", "\"bpe\" is not one of bytes, tokenizer.json, rwkv, characters, none ("}},
      {"tokenizer", "bytes", {"vocab_size", "10 is not the 256"}},
      {"task", "chat", {"task", "\"chat\" is not one of"}},
      {"attention", 3, {"attention", "3 is not an object"}},
      {"attention", Json::array(), {"attention", "0 objects for num_layers = 2"}},
  };
  for (const auto& c : cases) EXPECT_TRUE(FailsWith([&] { Parse(With(c.key, c.value)); }, c.parts)) << c.key << " " << c.value;
}

// SmallConfig as a model of another task, without a gate.
Json Seq2SeqConfig() {
  Json config = SmallConfig();
  const Json rfa = {{"system", "rfa"}, {"feature_map", "gaussian"}, {"num_features", 3}};
  config.erase("attention");
  config.erase("num_layers");
  config.update({{"task", "seq2seq"},
                 {"encoder_layers", 2},
                 {"decoder_layers", 3},
                 {"encoder_attention", {{"system", "softmax"}, {"max_context", 9}}},
                 {"decoder_attention", rfa},
                 {"cross_attention", rfa}});
  return config;
}
Json EncoderConfig(const char* task, const Json& more) {
  Json config = SmallConfig();
  config["task"] = task;
  config["attention"]["gate"] = "none";
  config.update(more);
  return config;
}

TEST(Config, Seq2Seq) {
  Json config = Seq2SeqConfig();
  config.update({{"source_vocab_size", 7}, {"bos_token_id", 0}, {"eos_token_id", 9}, {"pad_token_id", 1}});
  const ModelConfig parsed = Parse(config);
  EXPECT_EQ(parsed.task, format::Task::Seq2Seq);
  EXPECT_EQ(parsed.encoder.size(), 2u);
  EXPECT_EQ(parsed.decoder.size(), 3u);
  EXPECT_EQ(parsed.cross.size(), 3u);
  EXPECT_EQ(parsed.encoder[0].type, format::OpAttributes::NoncausalCache);
  EXPECT_EQ(parsed.decoder[0].type, format::OpAttributes::LinearState);
  EXPECT_EQ(parsed.cross[0].type, format::OpAttributes::NoncausalLinear);
  EXPECT_EQ(parsed.source_vocab_size, 7u);
  EXPECT_EQ(parsed.bos_token, 0);
  EXPECT_EQ(parsed.eos_token, 9);
  EXPECT_FALSE(parsed.share_embeddings);
  const ModelConfig plain = Parse(Seq2SeqConfig());
  EXPECT_EQ(plain.source_vocab_size, 10u);
  EXPECT_EQ(plain.bos_token, -1);
  EXPECT_EQ(plain.eos_token, -1);
}

TEST(Config, ClassificationAndMaskedLm) {
  const ModelConfig classifier = Parse(EncoderConfig("classification", {{"num_labels", 3}, {"pooling", "max"}}));
  EXPECT_EQ(classifier.encoder.size(), 2u);
  EXPECT_TRUE(classifier.decoder.empty());
  EXPECT_EQ(classifier.num_labels, 3u);
  EXPECT_EQ(classifier.pooling, format::PoolKind::Max);
  EXPECT_FALSE(classifier.head_transform);
  const ModelConfig masked = Parse(EncoderConfig("masked_lm", {{"lm_head_transform", true}, {"mask_token_id", 4}}));
  EXPECT_TRUE(masked.head_transform);
  EXPECT_EQ(masked.mask_token, 4);
}

TEST(Config, ErrorsOfTasks) {
  const struct {
    Json config;
    Json more;
    std::vector<std::string> parts;
  } cases[] = {
      {Seq2SeqConfig(), {{"encoder_layers", 0}}, {"encoder_layers", "0 is outside 1"}},
      {Seq2SeqConfig(), {{"attention", 1}}, {"unknown field \"attention\""}},
      {Seq2SeqConfig(), {{"num_labels", 2}}, {"unknown field \"num_labels\""}},
      {Seq2SeqConfig(), {{"bos_token_id", 10}}, {"bos_token_id", "10 is outside 0 .. 9"}},
      {Seq2SeqConfig(), {{"pad_token_id", -1}}, {"pad_token_id", "-1"}},
      {Seq2SeqConfig(), {{"share_embeddings", true}, {"source_vocab_size", 7}}, {"share_embeddings", "source_vocab_size = 7"}},
      {Seq2SeqConfig(), {{"cross_attention", Json::array()}}, {"cross_attention", "0 objects for decoder_layers = 3"}},
      {Seq2SeqConfig(), {{"cross_attention", {{"system", "gla"}}}}, {"cross_attention: system", "\"gla\" has no cross form"}},
      {Seq2SeqConfig(),
       {{"decoder_attention", {{"system", "kv_clustering"}, {"num_slots", 2}}}},
       {"decoder_attention: system", "\"kv_clustering\" has no causal form, only: noncausal, cross"}},
      {Seq2SeqConfig(), {{"vocab_size", 256}, {"tokenizer", "bytes"}, {"source_vocab_size", 9}}, {"source_vocab_size", "256"}},
      {EncoderConfig("classification", {{"num_labels", 3}}), {}, {"\"pooling\" is missing, expected one of first, mean, max"}},
      {EncoderConfig("classification", {{"pooling", "mean"}}),
       {},
       {"\"num_labels\" is missing, expected an integer from 1 to 16777216"}},
      {EncoderConfig("classification", {{"pooling", "sum"}, {"num_labels", 3}}), {}, {"pooling", "\"sum\" is not one of first"}},
      {EncoderConfig("classification", {{"pooling", "mean"}, {"num_labels", 3}, {"lm_head_bias", true}}), {}, {"lm_head_bias"}},
      {EncoderConfig("masked_lm", {{"mask_token_id", 10}}), {}, {"mask_token_id", "10 is outside 0 .. 9"}},
      {EncoderConfig("masked_lm", {{"encoder_layers", 2}}), {}, {"unknown field \"encoder_layers\""}},
      {EncoderConfig("masked_lm", {{"attention", SmallConfig()["attention"]}}), {}, {"attention: gate", "only a causal form"}},
  };
  for (const auto& c : cases) {
    Json config = c.config;
    if (!c.more.empty()) config.update(c.more);
    EXPECT_TRUE(FailsWith([&] { Parse(config); }, c.parts)) << config;
  }
}

TEST(Config, CombinationsThatMakeNoSense) {
  Json config = With("head_dim", 3);
  config["position_embedding"] = "rope";
  EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"head_dim", "3 must be even for rope"}));
  config = With("hidden_size", 2);
  config["head_dim"] = 2;
  config["position_embedding"] = "sinusoidal";
  EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"hidden_size", "2 must be even and at least 4"}));
  config = With("position_embedding", "learned");
  config["max_positions"] = 4;
  config["first_position"] = 4;
  EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"first_position", "4 is past max_positions = 4"}));
  config = With("num_heads", 4096);
  config["head_dim"] = 1 << 14;
  EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"head_dim", "16384 times num_heads = 4096 is too large"}));
  config = With("num_heads", 1024);
  config["head_dim"] = 1;
  config["num_kv_heads"] = 1024;
  config["attention"] = {{"system", "abc_mlp"}, {"num_slots", 1 << 16}};
  EXPECT_TRUE(FailsWith([&] { Parse(config); }, {"num_slots", "67108864 slots in all heads are too many"}));
  EXPECT_TRUE(FailsWith([] { Parse(With("hidden_size", 9)); }, {"num_heads", "4 does not divide hidden_size = 9"}));
}

TEST(Config, AttentionValues) {
  const struct {
    const char* key;
    Json value;
    std::vector<std::string> parts;
  } cases[] = {
      {"system", "hyena", {"attention: system", "\"hyena\" is unknown (tarn-convert --systems "}},
      {"feature_map", "relu", {"feature_map", "\"relu\" is not one of gaussian, arccos"}},
      {"feature_map", "gausian", {"feature_map", "\"gausian\" is not one of gaussian, arccos (did you mean gaussian?)"}},
      {"num_features", 0, {"num_features", "0"}},
      {"gate", "vector", {"gate", "\"vector\""}},
      {"normalize_qk", 1, {"normalize_qk", "1 is not true or false"}},
      {"norm_eps", -1e-3, {"norm_eps", "negative"}},
      {"norm_eps_mode", "above", {"norm_eps_mode", "\"above\""}},
      {"den_mode", "max", {"den_mode", "\"max\""}},
      {"den_eps", 0, {"den_eps", "above 0"}},
      {"den_eps", 1e-60, {"den_eps", "above 0"}},
      {"scale", "d^-1/2", {"scale", "is not a number"}},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(FailsWith([&] { Parse(WithAttention(c.key, c.value)); }, c.parts)) << c.key << " " << c.value;
  }
  const Json abc = {{"system", "abc_mlp"}, {"num_slots", 4}};
  const auto parse_abc = [&](const char* key, const Json& value) {
    Json attention = abc;
    attention[key] = value;
    Parse(With("attention", attention));
  };
  EXPECT_NO_THROW(parse_abc("logit_clamp", nullptr));
  EXPECT_TRUE(FailsWith([&] { parse_abc("logit_clamp", {1, -1}); }, {"logit_clamp", "[1,-1] is no range"}));
  EXPECT_TRUE(FailsWith([&] { parse_abc("logit_clamp", {1}); }, {"logit_clamp", "[1]"}));
  EXPECT_TRUE(FailsWith([&] { parse_abc("control_sharing", "head"); }, {"control_sharing", "\"head\""}));
  EXPECT_TRUE(FailsWith([&] { parse_abc("activation", "tanh"); }, {"activation", "\"tanh\""}));
  EXPECT_TRUE(FailsWith([&] { parse_abc("num_slots", 1 << 17); }, {"num_slots", "131072 is outside 1 .. 65536"}));
}

TEST(Config, BrokenJson) {
  EXPECT_TRUE(FailsWith([] { ParseConfig("{", "c.json"); }, {"c.json: not valid JSON"}));
  EXPECT_TRUE(FailsWith([] { ParseConfig("", "c.json"); }, {"c.json: not valid JSON"}));
  EXPECT_TRUE(FailsWith([] { ParseConfig("[1]", "c.json"); }, {"c.json", "[1] is not an object"}));
  EXPECT_TRUE(FailsWith([] { ParseConfig(R"({"norm": 1, "norm": 2})", "c.json"); }, {"c.json", "\"norm\"", "twice"}));
}

}  // namespace
}  // namespace tarn::convert
