#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/convert/built_graph.h"
#include "tests/convert/convert_testing.h"
#include "tools/convert/config/config.h"
#include "variants/recurrence.h"

namespace tarn::convert {
namespace {

TEST(CausalLm, ValuesStandInTheOrderInWhichTheyAreWritten) {
  for (const char* positions : {"none", "sinusoidal", "learned", "rope"}) {
    Json config = With(With(SmallConfig(), "position_embedding", positions), "max_positions", 4);
    const BuiltGraph graph(config);
    const format::Program& program = graph.program();
    EXPECT_EQ(program.num_inputs(), 1u);
    EXPECT_EQ(program.values()->Get(0)->name()->str(), "tokens");
    EXPECT_EQ(program.values()->Get(0)->dtype(), format::DType::I32);
    uint32_t next = 1, state = 0;
    for (const format::Op* op : *program.ops()) {
      for (const format::Slice* slice : *op->inputs()) {
        EXPECT_LT(slice->value(), next) << op->name()->str();
        EXPECT_LE(slice->begin() + slice->width(), program.values()->Get(slice->value())->width()) << op->name()->str();
      }
      for (const uint32_t output : *op->outputs()) EXPECT_EQ(output, next++) << op->name()->str();
      for (const uint32_t index : *op->states()) EXPECT_EQ(index, state++) << op->name()->str();
    }
    EXPECT_EQ(next, program.values()->size());
    EXPECT_EQ(state, graph.model().states()->size());
    ASSERT_EQ(program.outputs()->size(), 1u);
    const format::Value& logits = *program.values()->Get(program.outputs()->Get(0));
    EXPECT_EQ(logits.name()->str(), "logits");
    EXPECT_EQ(logits.width(), 10u);
    EXPECT_EQ(logits.time(), format::Time::Outputs);
  }
}

TEST(CausalLm, PreNormBlock) {
  const BuiltGraph graph(With(With(SmallConfig(), "num_layers", 1), "attention", SmallConfig()["attention"]));
  EXPECT_EQ(graph.op_names(),
            (Texts{"embeddings", "layers.0.attn_norm", "layers.0.attn.qkvg_proj", "layers.0.attn", "layers.0.attn.o_proj",
                   "layers.0.attn.add", "layers.0.mlp_norm", "layers.0.mlp.gate_up_proj", "layers.0.mlp.act",
                   "layers.0.mlp.down_proj", "layers.0.mlp.add", "select_outputs", "norm", "lm_head"}));
  EXPECT_EQ(graph.inputs("layers.0.attn"), (Texts{"layers.0.attn.qkvg_proj[0, 8]", "layers.0.attn.qkvg_proj[8, 4]",
                                                  "layers.0.attn.qkvg_proj[12, 4]", "layers.0.attn.qkvg_proj[16, 2]"}));
  EXPECT_EQ(graph.inputs("layers.0.attn.add"), (Texts{"embeddings[0, 8]", "layers.0.attn.o_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs("layers.0.mlp.act"), (Texts{"layers.0.mlp.gate_up_proj[0, 12]", "layers.0.mlp.gate_up_proj[12, 12]"}));
  EXPECT_EQ(graph.tensors("layers.0.attn"), (Texts{"model.layers.0.attn.projection"}));
  EXPECT_EQ(graph.tensors("lm_head"), (Texts{"model.embeddings.weight"}));
  EXPECT_EQ(graph.inputs("norm"), (Texts{"select_outputs[0, 8]"}));
}

TEST(CausalLm, PostNormWithoutFinalNorm) {
  Json config = With(With(SmallConfig(), "norm_position", "post"), "final_norm", false);
  config["num_layers"] = 1;
  const BuiltGraph graph(config);
  EXPECT_EQ(graph.inputs("layers.0.attn.qkvg_proj"), (Texts{"embeddings[0, 8]"}));
  EXPECT_EQ(graph.inputs("layers.0.attn_norm"), (Texts{"layers.0.attn.add[0, 8]"}));
  EXPECT_EQ(graph.inputs("layers.0.mlp.gate_up_proj"), (Texts{"layers.0.attn_norm[0, 8]"}));
  EXPECT_EQ(graph.inputs("select_outputs"), (Texts{"layers.0.mlp_norm[0, 8]"}));
  EXPECT_EQ(graph.inputs("lm_head"), (Texts{"select_outputs[0, 8]"}));
  EXPECT_FALSE(graph.has("norm"));
}

TEST(CausalLm, Hybrid) {
  Json config = SmallConfig();
  config["attention"] = {SmallConfig()["attention"], {{"system", "softmax"}, {"max_context", 7}}};
  const BuiltGraph graph(config);
  EXPECT_NE(graph.op("layers.0.attn").attributes_as_LinearState(), nullptr);
  const auto* cache = graph.op("layers.1.attn").attributes_as_CacheAttention();
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->capacity(), 7u);
  EXPECT_TRUE(graph.has("layers.0.attn.qkvg_proj"));
  EXPECT_TRUE(graph.has("layers.1.attn.qkv_proj"));

  const Json slots = {{"system", "abc_mlp"}, {"num_slots", 5}, {"control_sharing", "model"}};
  config["attention"] = {slots, With(slots, "num_slots", 6)};
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"model.control_proj.weight", "[10, 8]", "[12, 8]"}));
}

TEST(CausalLm, WhereNormsAndPartsStand) {
  const BuiltGraph output(With(SmallConfig(), "norm_position", "output"));
  EXPECT_EQ(output.inputs("layers.0.attn_norm"), (Texts{"layers.0.attn.o_proj[0, 8]"}));
  EXPECT_EQ(output.inputs("layers.0.attn.add"), (Texts{"embeddings[0, 8]", "layers.0.attn_norm[0, 8]"}));
  const BuiltGraph both(With(SmallConfig(), "norm_position", "both"));
  EXPECT_EQ(both.inputs("layers.0.attn_norm"), (Texts{"embeddings[0, 8]"}));
  EXPECT_EQ(both.inputs("layers.0.attn_output_norm"), (Texts{"layers.0.attn.o_proj[0, 8]"}));
  EXPECT_EQ(both.inputs("layers.0.attn.add"), (Texts{"embeddings[0, 8]", "layers.0.attn_output_norm[0, 8]"}));
  const BuiltGraph parallel(With(SmallConfig(), "parallel", true));
  EXPECT_EQ(parallel.inputs("layers.0.mlp_norm"), (Texts{"embeddings[0, 8]"}));
  EXPECT_EQ(parallel.inputs("layers.0.mlp.add"), (Texts{"layers.0.attn.add[0, 8]", "layers.0.mlp.down_proj[0, 8]"}));
  EXPECT_TRUE(FailsWith([] { BuiltGraph{With(With(SmallConfig(), "parallel", true), "norm_position", "post")}; }, {"parallel"}));
}

TEST(CausalLm, Block) {
  Json config = With(With(SmallConfig(), "position_embedding", "rope"), "attention_conv", true);
  config.update({{"conv_taps", 3},
                 {"conv_bias", true},
                 {"conv_activation", "none"},
                 {"qk_activation", "silu"},
                 {"v_activation", "relu"},
                 {"output_activation", "silu"},
                 {"output_norm", "head"},
                 {"output_norm_eps", 0.5},
                 {"output_gate", "silu"}});
  config["attention"] = {{"system", "gla"}, {"gate_low_rank", true}, {"gate_rank", 5}, {"gate_bias", true}};
  const BuiltGraph graph(config);
  const std::string a = "layers.1.attn";
  EXPECT_EQ(graph.inputs(a + ".conv"), (Texts{a + ".qkv_proj[0, 16]"}));
  EXPECT_EQ(graph.tensors(a + ".conv"), (Texts{"model." + a + ".qkv_conv.weight", "model." + a + ".qkv_conv.bias"}));
  EXPECT_FALSE(graph.op(a + ".conv").attributes_as_CausalConv()->silu());
  EXPECT_EQ(graph.inputs(a + ".qk_act"), (Texts{a + ".conv[0, 12]"}));
  EXPECT_EQ(graph.inputs(a + ".rope"), (Texts{a + ".qk_act[0, 12]", "rope_angles[0, 2]"}));
  EXPECT_EQ(graph.inputs(a + ".v_act"), (Texts{a + ".conv[12, 4]"}));
  EXPECT_EQ(graph.inputs(a + ".g_proj.1"), (Texts{a + ".g_proj.0[0, 5]"}));
  EXPECT_EQ(graph.tensors(a + ".g_proj.1"), (Texts{"model." + a + ".g_proj.1.weight", "model." + a + ".g_proj.1.bias"}));
  EXPECT_EQ(graph.inputs(a), (Texts{a + ".rope[0, 8]", a + ".rope[8, 4]", a + ".v_act[0, 4]", a + ".g_proj.1[0, 4]"}));
  EXPECT_EQ(graph.inputs(a + ".o_norm"), (Texts{a + ".o_act[0, 8]"}));
  EXPECT_EQ(graph.op(a + ".o_norm").attributes_as_Norm()->eps(), 0.5f);
  EXPECT_EQ(graph.inputs(a + ".o_gate"), (Texts{a + ".o_gate_proj[0, 8]", a + ".o_norm[0, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".o_proj"), (Texts{a + ".o_gate[0, 8]"}));
  // A state of the last taps - 1 rows, before that of the attention.
  const format::State& rows = *graph.model().states()->Get(graph.op(a + ".conv").states()->Get(0));
  EXPECT_EQ(rows.name()->str(), a + ".conv.rows");
  EXPECT_EQ(std::vector<uint32_t>(rows.shape()->begin(), rows.shape()->end()), (std::vector<uint32_t>{2, 16}));

  config.erase("output_norm_eps");
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"output_norm_eps", "is missing"}));
  config["output_norm_eps"] = 0.5;
  config["conv_taps"] = 9;
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"conv_taps", "9 is outside 2 .. 8"}));
}

TEST(CausalLm, LayersWithHeadsAndBlocksOfTheirOwn) {
  Json config = With(With(SmallConfig(), "num_layers", 3), "position_embedding", "rope");
  config.update({{"num_heads", 2},
                 {"num_kv_heads", 1},
                 {"head_dim", 4},
                 {"qk_norm", "head"},
                 {"qk_norm_eps", 0.25},
                 {"layer_rope", {nullptr, false, 5.0}}});
  config["attention"] = {{{"system", "softmax"}, {"max_context", 9}},
                         {{"system", "short_conv"}, {"taps", 3}},
                         {{"system", "sliding_window"}, {"window", 9}}};
  config["layer_blocks"] = {nullptr,
                            {{"num_heads", 1}, {"head_dim", 8}, {"attention_bias", true}},
                            {{"num_heads", 3}, {"head_dim", 6}, {"value_head_dim", 5}, {"output_gate", "gelu_tanh"}}};
  const BuiltGraph graph(config);
  const std::string conv = "model.layers.1.attn.";
  EXPECT_EQ(graph.inputs("layers.0.attn.k_norm"), (Texts{"layers.0.attn.qkv_proj[8, 4]"}));
  EXPECT_EQ(graph.op("layers.0.attn.k_norm").attributes_as_Norm()->eps(), 0.25f);
  EXPECT_EQ(graph.inputs(conv + "write"), (Texts{"layers.1.attn.qkv_proj[8, 8]", "layers.1.attn.qkv_proj[16, 8]"}));
  EXPECT_EQ(graph.inputs(conv + "read"), (Texts{"layers.1.attn.qkv_proj[0, 8]", conv + "conv[0, 8]"}));
  EXPECT_EQ(graph.op(conv + "read").attributes_as_SiluMul()->kind(), format::ActivationKind::Linear);
  EXPECT_EQ(graph.tensors("layers.1.attn.o_proj"), (Texts{conv + "o_proj.weight", conv + "o_proj.bias"}));
  // No norms of its own, and the angles of its own heads.
  EXPECT_EQ(graph.inputs("layers.2.attn.rope"), (Texts{"layers.2.attn.qkv_proj[0, 36]", "rope_angles.1[0, 6]"}));
  EXPECT_EQ(graph.inputs("layers.2.attn.o_gate"), (Texts{"layers.2.attn.o_gate_proj[0, 15]", "layers.2.attn[0, 15]"}));
  EXPECT_FALSE(graph.has("layers.1.attn.rope") || graph.has("layers.0.attn.o_gate"));

  const auto refused = [&](const Json& blocks, std::vector<std::string> parts) {
    EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "layer_blocks", blocks)}; }, parts)) << blocks;
  };
  refused(7, {"layer_blocks", "7 is not a list of num_layers = 3"});
  refused({nullptr, nullptr}, {"layer_blocks", "num_layers = 3"});
  refused({nullptr, nullptr, 7}, {"layer_blocks[2]", "not an object"});
  refused({nullptr, nullptr, {{"num_heads", 3}}}, {"layer_blocks[2]", "num_heads", "3 does not divide hidden_size = 8"});
  refused({nullptr, nullptr, {{"num_heads", 2}, {"mlp_bias", true}}}, {"layer_blocks[2]", "unknown field \"mlp_bias\""});
  refused({nullptr, config["layer_blocks"][1], {{"num_heads", 1}, {"head_dim", 5}}}, {"head_dim", "5 must be even for rope"});
  config["layer_rope"] = {nullptr, false, nullptr};
  config["rope_frequencies"] = {1.0, 0.5};
  refused(config["layer_blocks"], {"layer_blocks", "[2]: head_dim: 6 is not the 4 that rope_frequencies are for"});
  config["layer_rope"][2] = false;
  EXPECT_NO_THROW(BuiltGraph{config});
}

TEST(CausalLm, RecurrencesReadValuesAlone) {
  Json config = With(With(SmallConfig(), "num_kv_heads", 2), "num_heads", 2);
  config.update({{"head_dim", 4}, {"value_head_dim", 4}, {"attention_conv", true}, {"output_gate", "gelu"}});
  config["attention"] = {{"system", "rg_lru"}, {"gate_blocks", 4}};
  const BuiltGraph graph(config);
  const std::string a = "layers.0.attn", model = "model." + a + ".";
  EXPECT_EQ(graph.inputs(a + ".conv"), (Texts{a + ".v_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs(model + "g_proj"), (Texts{a + ".conv[0, 8]"}));
  EXPECT_EQ(graph.inputs(model + "recurrence"), (Texts{model + "input_gate[0, 8]", model + "g_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".o_gate"), (Texts{a + ".o_gate_proj[0, 8]", model + "recurrence[0, 8]"}));
  const format::DiagonalRecurrence& attributes = *graph.op(model + "recurrence").attributes_as_DiagonalRecurrence();
  EXPECT_EQ(attributes.decay(), static_cast<uint8_t>(RecurrenceDecay::kExponential));
  EXPECT_EQ(attributes.input(), static_cast<uint8_t>(RecurrenceInput::kRoot));

  config["attention"] = {{"system", "diagonal_recurrence"}};
  const BuiltGraph gated(config);
  EXPECT_EQ(gated.inputs(a), (Texts{a + ".conv[0, 8]", a + ".vg_proj[8, 8]"}));
  config["qk_norm"] = "head";
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"qk_norm", "diagonal_recurrence has no q and k"}));
}

TEST(CausalLm, LayersWithoutMlp) {
  const BuiltGraph graph(With(SmallConfig(), "intermediate_size", 0));
  EXPECT_EQ(graph.inputs("layers.1.attn_norm"), (Texts{"layers.0.attn.add[0, 8]"}));
  EXPECT_TRUE(FailsWith([] { BuiltGraph{With(With(SmallConfig(), "intermediate_size", 0), "parallel", true)}; },
                        {"parallel", "there is no MLP"}));
}

TEST(CausalLm, SkipAndGateBeforeTheNorm) {
  Json config = With(With(SmallConfig(), "num_heads", 4), "num_key_heads", 2);
  config.update({{"num_kv_heads", 4},
                 {"head_dim", 2},
                 {"value_head_dim", 3},
                 {"output_skip", "head"},
                 {"output_gate", "silu"},
                 {"output_gate_first", true},
                 {"output_norm", "full"},
                 {"output_norm_eps", 0.5}});
  config["attention"] = {{"system", "mamba2"}};
  const BuiltGraph graph(config);
  const std::string a = "layers.0.attn";
  EXPECT_EQ(graph.inputs(a + ".skip"), (Texts{a + "[0, 12]", a + ".qkvg_proj[8, 12]"}));
  EXPECT_EQ(graph.tensors(a + ".skip"), (Texts{"model." + a + ".skip"}));
  EXPECT_EQ(graph.inputs(a + ".o_gate"), (Texts{a + ".o_gate_proj[0, 12]", a + ".skip[0, 12]"}));
  EXPECT_EQ(graph.inputs(a + ".o_norm"), (Texts{a + ".o_gate[0, 12]"}));
  EXPECT_EQ(graph.inputs(a + ".o_proj"), (Texts{a + ".o_norm[0, 12]"}));
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "output_skip", "products")}; }, {"output_skip", "output_gate_first"}));
  config["output_gate_first"] = false;
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "output_skip", "products")}; }, {"output_skip", "num_key_heads, too"}));
  config["output_gate_first"] = true;
  config.erase("output_norm_eps");
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "output_norm", "none")}; }, {"output_gate_first", "needs an output_norm"}));
}

TEST(CausalLm, TokenShiftAndFirstValues) {
  Json config = With(SmallConfig(), "num_heads", 2);
  config.update({{"token_shift", true},
                 {"value_residual", true},
                 {"output_norm", "groups"},
                 {"output_norm_eps", 0.5},
                 {"output_skip", "products"},
                 {"output_gate", "linear"},
                 {"output_gate_low_rank", true},
                 {"output_gate_rank", 5},
                 {"output_gate_hidden_act", "sigmoid"},
                 {"attention_bias", false}});
  config["attention"] = {{"system", "rwkv7"}, {"gate_low_rank", true}, {"gate_rank", 3}, {"gate_hidden_act", "tanh"}};
  const BuiltGraph graph(config);
  const std::string a = "layers.1.attn";
  EXPECT_EQ(graph.inputs(a + ".k_proj"), (Texts{a + ".shift[8, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".g_proj.1"), (Texts{a + ".g_proj.act[0, 3]"}));
  EXPECT_EQ(graph.inputs(a + ".b_proj"), (Texts{a + ".shift[32, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".v_gate_proj"), (Texts{a + ".shift[16, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".v_blend"), (Texts{"layers.0.attn.v_proj[0, 8]", a + ".v_gate_proj[0, 8]", a + ".v_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".k_blend"), (Texts{a + ".k_proj[0, 8]", a + ".b_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs(a), (Texts{a + ".q_proj[0, 8]", a + ".k_blend[0, 8]", a + ".v_blend[0, 8]", a + ".g_proj.1[0, 8]",
                                    a + ".b_proj[0, 8]", a + ".k_proj[0, 8]"}));
  EXPECT_EQ(graph.op(a + ".o_norm").attributes_as_Norm()->group(), 4u);
  EXPECT_EQ(graph.inputs(a + ".skip"),
            (Texts{a + ".o_norm[0, 8]", a + ".v_blend[0, 8]", a + ".q_proj[0, 8]", a + ".k_blend[0, 8]"}));
  EXPECT_EQ(graph.inputs(a + ".o_gate_proj.0"), (Texts{a + ".shift[40, 8]"}));
  EXPECT_EQ(graph.inputs("layers.1.mlp.shift"), (Texts{"layers.1.mlp_norm[0, 8]"}));
  const format::State& rows = *graph.model().states()->Get(graph.op(a + ".shift").states()->Get(0));
  EXPECT_EQ(std::vector<uint32_t>(rows.shape()->begin(), rows.shape()->end()), (std::vector<uint32_t>{1, 8}));

  for (const auto& [key, value] : {std::pair<const char*, Json>{"attention_conv", true}, {"qk_norm", "head"}}) {
    EXPECT_TRUE(FailsWith([&, &k = key, &v = value] { BuiltGraph{With(config, k, v)}; }, {"token_shift", "not supported"}));
  }
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "position_embedding", "rope")}; }, {"token_shift", "rope"}));
}

TEST(CausalLm, EmbeddingsAndHead) {
  Json config = With(With(SmallConfig(), "position_embedding", "learned"), "max_positions", 6);
  config["embedding_norm"] = config["lm_head_bias"] = config["scale_embeddings"] = true;
  config["tie_word_embeddings"] = false;
  config["norm"] = "layernorm";
  config["first_position"] = 2;
  const BuiltGraph graph(config, Precision::kInt8);
  EXPECT_EQ(graph.op("embeddings").attributes_as_Embedding()->scale(), std::sqrt(8.0f));
  EXPECT_EQ(graph.inputs("positions"), (Texts{"embeddings[0, 8]"}));
  EXPECT_EQ(graph.inputs("embedding_norm"), (Texts{"positions[0, 8]"}));
  EXPECT_EQ(graph.tensors("embedding_norm"), (Texts{"model.embedding_norm.weight", "model.embedding_norm.bias"}));
  EXPECT_EQ(graph.tensors("lm_head"), (Texts{"lm_head.weight", "lm_head.bias"}));
  EXPECT_EQ(graph.model().first_position(), 2u);
  const format::Tensor& table = *graph.model().tensors()->Get(graph.op("positions").tensors()->Get(0));
  EXPECT_EQ(table.name()->str(), "model.position_embeddings.weight");
  EXPECT_EQ(table.dtype(), format::DType::F32);
}

TEST(CausalLm, ActivationsAndSinusoid) {
  const std::pair<const char*, format::ActivationKind> kinds[] = {{"relu", format::ActivationKind::Relu},
                                                                  {"gelu", format::ActivationKind::Gelu},
                                                                  {"gelu_tanh", format::ActivationKind::GeluTanh}};
  for (const auto& [name, kind] : kinds) {
    const BuiltGraph graph(With(With(SmallConfig(), "hidden_act", name), "position_embedding", "sinusoidal"));
    EXPECT_EQ(graph.op("layers.0.mlp.act").attributes_as_Activation()->kind(), kind);
    EXPECT_EQ(graph.tensors("layers.0.mlp.up_proj"),
              (Texts{"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.bias"}));
    EXPECT_NE(graph.op("positions").attributes_as_AddSinusoid(), nullptr);
  }
}

TEST(CausalLm, RowsThatInt8CannotSum) {
  const Json config = With(SmallConfig(), "intermediate_size", 65794);
  EXPECT_NO_THROW(BuiltGraph{config});
  EXPECT_TRUE(FailsWith([&] { BuiltGraph(config, Precision::kInt8); }, {"model.layers.0.mlp.down_proj.weight", "65794", "65793"}));
}

// The names that a checkpoint must have, for the config that uses most of them.
TEST(CausalLm, WeightNames) {
  Json config = With(SmallConfig(), "num_layers", 1);
  config["norm"] = "layernorm";
  const BuiltGraph graph(config);
  Texts names;
  for (const WeightSpec& spec : graph.weights()) names.push_back(spec.name);
  Texts expected = {"model.embeddings.weight", "model.norm.weight", "model.norm.bias"};
  for (const char* norm : {"attn_norm", "mlp_norm"}) {
    for (const char* part : {".weight", ".bias"}) expected.push_back(std::string("model.layers.0.") + norm + part);
  }
  for (const char* dense : {"attn.q", "attn.k", "attn.v", "attn.o", "attn.g", "mlp.gate", "mlp.up", "mlp.down"}) {
    for (const char* part : {"_proj.weight", "_proj.bias"}) expected.push_back(std::string("model.layers.0.") + dense + part);
  }
  expected.insert(expected.end(), {"model.layers.0.attn.random_matrix", "model.layers.0.attn.sigma"});
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace tarn::convert
