// Layers with two attentions beside each other, norms of parts of a row, and convolutions of logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/convert/built_graph.h"
#include "tests/convert/convert_testing.h"
#include "tools/convert/config/state_type.h"

namespace tarn::convert {
namespace {

// Softmax with rope, and Mamba 2 beside it with heads of its own.
Json ParallelConfig() {
  Json config = With(With(SmallConfig(), "num_heads", 2), "position_embedding", "rope");
  config.update({{"num_kv_heads", 1}, {"head_dim", 4}, {"value_head_dim", 4}});
  config["attention"] = {{"system", "softmax"}, {"max_context", 9}};
  config["second_attention"] = {{"system", "mamba2"}};
  config["second_block"] = {{"num_heads", 4},         {"num_key_heads", 2}, {"head_dim", 6},         {"value_head_dim", 3},
                            {"attention_conv", true}, {"conv_taps", 3},     {"output_skip", "head"}, {"output_gate", "silu"}};
  return config;
}

TEST(SecondAttention, ReadsTheSameRowsAndIsAddedToTheFirst) {
  const BuiltGraph graph(ParallelConfig());
  const std::string first = "layers.1.attn", second = "layers.1.second_attn";
  EXPECT_EQ(graph.inputs(first + ".qkv_proj"), (Texts{"layers.1.attn_norm[0, 8]"}));
  EXPECT_EQ(graph.inputs(second + ".qkvg_proj"), (Texts{"layers.1.attn_norm[0, 8]"}));
  EXPECT_EQ(graph.inputs(second + ".o_gate_proj"), (Texts{"layers.1.attn_norm[0, 8]"}));
  // q and k of 2 heads of 6, v of 4 heads of 3; no rope.
  EXPECT_EQ(graph.inputs(second),
            (Texts{second + ".conv[0, 12]", second + ".conv[12, 12]", second + ".conv[24, 12]", second + ".qkvg_proj[36, 4]"}));
  EXPECT_TRUE(graph.has(first + ".rope"));
  EXPECT_FALSE(graph.has(second + ".rope"));
  EXPECT_EQ(graph.tensors(second + ".skip"), (Texts{"model." + second + ".skip"}));
  EXPECT_EQ(graph.inputs(second + ".add"), (Texts{first + ".o_proj[0, 8]", second + ".o_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs(first + ".add"), (Texts{"layers.0.mlp.add[0, 8]", second + ".add[0, 8]"}));
  EXPECT_EQ(graph.inputs("layers.1.mlp_norm"), (Texts{first + ".add[0, 8]"}));
}

TEST(SecondAttention, StandsInsideTheNormAndBesideTheMlp) {
  const BuiltGraph output(With(ParallelConfig(), "norm_position", "output"));
  EXPECT_EQ(output.inputs("layers.0.attn_norm"), (Texts{"layers.0.second_attn.add[0, 8]"}));
  const BuiltGraph parallel(With(ParallelConfig(), "parallel", true));
  EXPECT_EQ(parallel.inputs("layers.0.attn.add"), (Texts{"embeddings[0, 8]", "layers.0.second_attn.add[0, 8]"}));
  EXPECT_EQ(parallel.inputs("layers.0.mlp.add"), (Texts{"layers.0.attn.add[0, 8]", "layers.0.mlp.down_proj[0, 8]"}));
}

TEST(SecondAttention, MayDifferFromLayerToLayer) {
  Json config = ParallelConfig();
  config.erase("second_block");
  config["second_attention"] = {{{"system", "sliding_window"}, {"window", 3}}, {{"system", "softmax"}, {"max_context", 5}}};
  const BuiltGraph graph(config);  // with the heads of the layer
  EXPECT_EQ(graph.inputs("layers.0.second_attn"),
            (Texts{"layers.0.second_attn.qkv_proj[0, 8]", "layers.0.second_attn.qkv_proj[8, 4]",
                   "layers.0.second_attn.qkv_proj[12, 4]"}));
  EXPECT_EQ(graph.op("layers.0.second_attn").attributes_as_CacheAttention()->window(), 3u);
  EXPECT_EQ(graph.op("layers.1.second_attn").attributes_as_CacheAttention()->window(), 0u);
}

TEST(SecondAttention, SaysWhatItRefuses) {
  const auto refused = [](const char* key, const Json& value, std::vector<std::string> parts) {
    EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(ParallelConfig(), key, value)}; }, parts)) << value;
  };
  refused("second_attention", Json::array(), {"second_attention", "0 objects for num_layers = 2"});
  refused("second_attention", nullptr, {"second_attention"});
  refused("second_attention", {{"system", "bert"}}, {"second_attention", "system", "\"bert\" is unknown"});
  refused("second_block", {{"num_heads", 3}}, {"second_block", "num_heads", "3 does not divide hidden_size = 8"});
  refused("second_block", {{"num_heads", 4}, {"mlp_bias", true}}, {"second_block", "unknown field \"mlp_bias\""});
  refused("second_block", {{"num_heads", 4}, {"value_residual", true}}, {"second_attention", "value_residual"});
  Json alone = ParallelConfig();
  alone.erase("second_attention");
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{alone}; }, {"second_block", "there is no second_attention"}));
  const Json encoder = With(ParallelConfig(), "task", "masked_lm");
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{encoder}; }, {"unknown field \"second_"}));
}

TEST(SecondAttention, ItsStatesCountForTheirType) {
  ModelConfig config = ParseConfig(ParallelConfig().dump(), "config.json");
  EXPECT_TRUE(FailsWith([&] { SetStateTypes(format::DType::I8, false, &config); }, {"layer 0 (mamba2)", "int8"}));
  SetStateTypes(format::DType::F16, true, &config);
  EXPECT_EQ(config.decoder[1].states[0].dtype, format::DType::F16);
  EXPECT_EQ(config.second[1].states[0].dtype, format::DType::F16);
}

TEST(OutputNorm, OfPartsOfARow) {
  Json config = ParallelConfig();
  config["second_block"].update({{"output_norm", "full"}, {"output_norm_eps", 0.5}, {"output_norm_groups", 2}});
  const BuiltGraph graph(config);
  const format::Norm& norm = *graph.op("layers.0.second_attn.o_norm").attributes_as_Norm();
  EXPECT_EQ(norm.group(), 6u);
  EXPECT_EQ(norm.kind(), format::NormKind::RmsNorm);
  EXPECT_EQ(graph.tensors("layers.0.second_attn.o_norm"), (Texts{"model.layers.0.second_attn.o_norm.weight"}));
  config["second_block"]["output_norm_groups"] = 1;
  EXPECT_EQ(BuiltGraph(config).op("layers.0.second_attn.o_norm").attributes_as_Norm()->group(), 0u);
  config["second_block"]["output_norm_groups"] = 5;
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"output_norm_groups", "5 does not divide the 12 columns"}));
  config["second_block"].update({{"output_norm", "head"}, {"output_norm_groups", 2}});
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"output_norm_groups"}));
}

TEST(AttentionConv, OfTheLogitsOfAGate) {
  Json config = With(With(SmallConfig(), "num_kv_heads", 2), "num_heads", 2);
  config.update(
      {{"head_dim", 4}, {"value_head_dim", 4}, {"attention_conv", true}, {"conv_logits", true}, {"v_activation", "silu"}});
  config["attention"] = {{"system", "diagonal_recurrence"}, {"lower_bounds", true}};
  const BuiltGraph graph(config);
  const std::string a = "layers.1.attn";
  EXPECT_EQ(graph.inputs(a + ".conv"), (Texts{a + ".vg_proj[0, 16]"}));
  EXPECT_EQ(graph.tensors(a + ".conv"), (Texts{"model." + a + ".vg_conv.weight"}));
  EXPECT_EQ(graph.inputs(a + ".v_act"), (Texts{a + ".conv[0, 8]"}));
  EXPECT_EQ(graph.inputs(a), (Texts{a + ".v_act[0, 8]", a + ".conv[8, 8]"}));
  EXPECT_EQ(graph.tensors(a), (Texts{"model." + a + ".floor"}));
  std::vector<std::string> names;
  for (const WeightSpec& spec : graph.weights()) names.push_back(spec.name);
  for (const std::string& name : {a + ".v_conv.weight", a + ".g_conv.weight", std::string("lower_bounds")}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), "model." + name), 1) << name;
  }
  config["attention"]["gate_floor"] = true;
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"gate_floor"}));
  config["attention"] = {{"system", "diagonal_recurrence"}, {"lower_bounds", true}, {"decay", "exponential"}};
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"lower_bounds"}));
  config["attention"] = {{"system", "gla"}};
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"conv_logits", "gla has logits that are projected apart"}));
  config["attention_conv"] = false;
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"conv_logits"}));
}

}  // namespace
}  // namespace tarn::convert
