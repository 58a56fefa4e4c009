#include <gtest/gtest.h>

#include <string>

#include "tests/convert/built_graph.h"
#include "tests/convert/convert_testing.h"
#include "tools/convert/config/config.h"

namespace tarn::convert {
namespace {

Json EncoderConfig(const char* task, const Json& more) {
  Json config = SmallConfig();
  config.update(
      {{"task", task}, {"num_layers", 1}, {"norm", "layernorm"}, {"attention", {{"system", "softmax"}, {"max_context", 9}}}});
  config.update(more);
  return config;
}

Json Seq2SeqConfig(const Json& cross, const Json& more = Json::object()) {
  Json config = EncoderConfig("seq2seq", more);
  config["encoder_attention"] = config["attention"];
  config["decoder_attention"] = {{"system", "abc_mlp"}, {"num_slots", 3}, {"control_sharing", "model"}};
  config["cross_attention"] = cross;
  config.update({{"encoder_layers", 1}, {"decoder_layers", 2}});
  for (const char* key : {"attention", "num_layers"}) config.erase(key);
  return config;
}

TEST(Encoder, ClassifierPoolsNormedRows) {
  const BuiltGraph graph(EncoderConfig("classification", {{"num_labels", 3}, {"pooling", "max"}, {"classifier_transform", true}}));
  EXPECT_EQ(graph.model().task(), format::Task::Classification);
  EXPECT_EQ(graph.model().required_features()->Get(0)->str(), "programs");
  EXPECT_EQ(graph.program().name()->str(), "encode");
  const Texts names = graph.op_names();
  EXPECT_EQ(Texts(names.end() - 5, names.end()), (Texts{"norm", "pool", "classifier.dense", "classifier.act", "classifier"}));
  EXPECT_EQ(graph.op("pool").attributes_as_Pool()->kind(), format::PoolKind::Max);
  EXPECT_EQ(graph.op("classifier.act").attributes_as_Activation()->kind(), format::ActivationKind::Tanh);
  const format::Value& logits = *graph.program().values()->Get(graph.program().outputs()->Get(0));
  EXPECT_EQ(logits.time(), format::Time::Fixed);
  EXPECT_EQ(logits.rows(), 1u);
  EXPECT_EQ(logits.width(), 3u);
  EXPECT_EQ(graph.tensors("classifier"), (Texts{"classifier.weight", "classifier.bias"}));
  EXPECT_EQ(graph.op("layers.0.attn").attributes_as_NoncausalCache()->part(), format::NoncausalPart::Whole);
  EXPECT_EQ(graph.model().states()->size(), 0u);
}

TEST(Encoder, MaskedLmTransformsSelectedRows) {
  const BuiltGraph graph(EncoderConfig("masked_lm", {{"lm_head_transform", true}, {"lm_head_bias", true}, {"mask_token_id", 4}}));
  const Texts names = graph.op_names();
  EXPECT_EQ(Texts(names.end() - 6, names.end()),
            (Texts{"select_outputs", "norm", "lm_head.dense", "lm_head.act", "lm_head.norm", "lm_head"}));
  EXPECT_EQ(graph.tensors("lm_head.norm"), (Texts{"lm_head.norm.weight", "lm_head.norm.bias"}));
  EXPECT_EQ(graph.tensors("lm_head"), (Texts{"model.embeddings.weight", "lm_head.bias"}));
  EXPECT_EQ(graph.model().mask_token(), 4);
}

TEST(Encoder, APackGoesFromLayerToLayer) {
  const Json luna = {{"system", "luna_encoder"}, {"num_slots", 3}, {"max_context", 9}};
  const Json more = {{"num_kv_heads", 4}, {"num_layers", 2}, {"num_labels", 2}, {"pooling", "first"}, {"attention", luna}};
  const BuiltGraph graph(EncoderConfig("classification", more));
  EXPECT_EQ(graph.tensors("pack"), (Texts{"model.pack"}));
  EXPECT_EQ(graph.inputs("layers.0.attn.pack_add")[0], "pack[0, 8]");
  EXPECT_EQ(graph.inputs("layers.1.attn.pack_add")[0], "layers.0.attn.pack_norm[0, 8]");
  Json other = more;
  other["attention"] = {luna, luna};
  other["attention"][1]["num_slots"] = 2;
  EXPECT_TRUE(FailsWith([&] { BuiltGraph(EncoderConfig("classification", other)); }, {"layers.1.attn", "2 is not the 3"}));
}

TEST(Encoder, APackMayBeNormedBeforeItsAttention) {
  const Json luna = {{"system", "luna_encoder"}, {"num_slots", 3}, {"max_context", 9}, {"pack_norm_position", "pre"}};
  const Json more = {{"num_kv_heads", 4}, {"num_layers", 2}, {"num_labels", 2}, {"pooling", "first"}, {"attention", luna}};
  const BuiltGraph graph(EncoderConfig("classification", more));
  EXPECT_EQ(graph.inputs("layers.0.attn.pack_norm")[0], "pack[0, 8]");
  EXPECT_EQ(graph.inputs("layers.0.attn.pack_add")[0], "pack[0, 8]");
  EXPECT_EQ(graph.inputs("layers.1.attn.pack_norm")[0], "layers.0.attn.pack_add[0, 8]");
  EXPECT_EQ(graph.inputs("layers.1.attn.pack_add")[0], "layers.0.attn.pack_add[0, 8]");
  Json other = more;
  other["attention"]["pack_norm_position"] = "both";
  EXPECT_TRUE(FailsWith([&] { BuiltGraph(EncoderConfig("classification", other)); },
                        {"pack_norm_position", "\"both\" is not one of post, pre"}));
}

TEST(Encoder, GlobalTokensMayHaveProjectionsOfTheirOwn) {
  const Json l2g = {{"system", "l2g_window"}, {"window", 4}, {"global_positions", {0}}, {"global_projections", true}};
  const Json more = {{"attention", l2g}, {"attention_bias", true}, {"position_embedding", "rope"}};
  const BuiltGraph graph(EncoderConfig("masked_lm", more));
  const Texts inputs = graph.inputs("layers.0.attn");
  ASSERT_EQ(inputs.size(), 6u);
  EXPECT_EQ(inputs[0].substr(0, 18), "layers.0.attn.rope");
  EXPECT_EQ(inputs[3].substr(0, 25), "layers.0.attn.global_rope");
  EXPECT_NE(inputs[5].find("layers.0.attn.qkvqkv_proj"), std::string::npos);
  Json normed = more;
  normed["qk_norm"] = "head";
  EXPECT_TRUE(
      FailsWith([&] { BuiltGraph(EncoderConfig("masked_lm", normed)); }, {"layers.0.attn", "qk_norm", "global_projections"}));
}

TEST(Encoder, PoolingformerIsAGraphOfItsOwn) {
  const Json pooling = {{"system", "poolingformer"}, {"window1", 2}, {"window2", 6}, {"pool_kernel", 3}, {"pool_stride", 2}};
  const BuiltGraph graph(EncoderConfig("masked_lm", {{"attention", pooling}}));
  EXPECT_TRUE(graph.has("model.layers.0.attn.level2"));
  EXPECT_EQ(graph.inputs("layers.0.attn.o_proj"), (Texts{"model.layers.0.attn.add[0, 8]"}));
}

TEST(Seq2Seq, DecodeReadsWhatEncodeWrites) {
  BuiltGraph graph(Seq2SeqConfig({{"system", "rfa"}, {"feature_map", "arccos"}, {"num_features", 3}},
                                 {{"source_vocab_size", 7}, {"bos_token_id", 0}, {"eos_token_id", 2}, {"pad_token_id", 1}}));
  EXPECT_EQ(graph.model().task(), format::Task::Seq2Seq);
  EXPECT_EQ(graph.model().source_vocab_size(), 7u);
  EXPECT_EQ(graph.model().bos_token(), 0);
  EXPECT_EQ(graph.model().eos_token(), 2);
  ASSERT_EQ(graph.model().programs()->size(), 2u);
  EXPECT_EQ(graph.program().name()->str(), "encode");
  const format::Value& hidden = *graph.program().values()->Get(graph.program().outputs()->Get(0));
  EXPECT_EQ(hidden.name()->str(), "encoder.norm");
  EXPECT_EQ(graph.inputs("decoder.layers.1.cross_attn"),
            (Texts{"decoder.layers.1.cross_attn.kv_proj[0, 4]", "decoder.layers.1.cross_attn.kv_proj[4, 4]"}));
  EXPECT_EQ(graph.inputs("decoder.layers.1.cross_attn.kv_proj"), (Texts{"encoder.norm[0, 8]"}));
  EXPECT_EQ(graph.tensors("encoder.embeddings"), (Texts{"model.encoder.embeddings.weight"}));
  const format::Op& write = graph.op("decoder.layers.1.cross_attn");
  EXPECT_EQ(write.attributes_as_NoncausalLinear()->part(), format::NoncausalPart::Write);
  ASSERT_EQ(write.states()->size(), 2u);
  EXPECT_EQ(write.states()->Get(0), 2u);
  EXPECT_EQ(graph.model().states()->Get(2)->owner(), format::Owner::Source);
  EXPECT_EQ(graph.model().states()->Get(2)->name()->str(), "decoder.layers.1.cross_attn.S");

  graph.Look(1);
  EXPECT_EQ(graph.program().name()->str(), "decode");
  const format::Op& read = graph.op("decoder.layers.1.cross_attn");
  EXPECT_EQ(read.attributes_as_NoncausalLinear()->part(), format::NoncausalPart::Read);
  EXPECT_EQ(graph.inputs("decoder.layers.1.cross_attn"), (Texts{"decoder.layers.1.cross_attn.q_proj[0, 8]"}));
  EXPECT_EQ(read.states()->Get(0), 2u);
  EXPECT_EQ(graph.tensors("decoder.layers.1.cross_attn"), (Texts{"model.decoder.layers.1.cross_attn.projection"}));
  EXPECT_EQ(graph.op("decoder.layers.0.attn").states()->Get(0), 4u);  // behind those of the sources
  EXPECT_EQ(graph.model().states()->Get(4)->owner(), format::Owner::Sequence);
  EXPECT_EQ(graph.tensors("decoder.layers.0.attn.control_proj"), (Texts{"model.decoder.control_proj.weight"}));
  EXPECT_EQ(graph.tensors("decoder.embeddings"), (Texts{"model.decoder.embeddings.weight"}));
  EXPECT_EQ(graph.tensors("lm_head"), (Texts{"model.decoder.embeddings.weight"}));
}

TEST(Seq2Seq, LayersThatShareTheControlOfSourcesShareItsLogits) {
  BuiltGraph graph(
      Seq2SeqConfig({{"system", "abc_mlp"}, {"num_slots", 5}, {"control_sharing", "model"}}, {{"share_embeddings", true}}));
  EXPECT_EQ(graph.tensors("decoder.layers.0.cross_attn.control_proj"), (Texts{"model.decoder.cross_control_proj.weight"}));
  EXPECT_FALSE(graph.has("decoder.layers.1.cross_attn.control_proj"));
  EXPECT_EQ(graph.inputs("decoder.layers.1.cross_attn")[2], "decoder.layers.0.cross_attn.control_proj[0, 10]");
  EXPECT_EQ(graph.tensors("encoder.embeddings"), (Texts{"model.embeddings.weight"}));
  graph.Look(1);
  EXPECT_EQ(graph.tensors("decoder.embeddings"), (Texts{"model.embeddings.weight"}));
}

TEST(Seq2Seq, RowsOfSoftmaxAreAsManyAsTheSource) {
  const BuiltGraph graph(Seq2SeqConfig({{"system", "softmax"}, {"max_context", 9}}));
  const format::State& keys = *graph.model().states()->Get(0);
  EXPECT_EQ(keys.source_axis(), 1);
  EXPECT_EQ(keys.shape()->Get(1), 1u);
}

}  // namespace
}  // namespace tarn::convert
