#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/convert/built_graph.h"
#include "tests/convert/convert_testing.h"
#include "tools/convert/config/config.h"
#include "tools/convert/config/state_type.h"
#include "variants/linear.h"

namespace tarn::convert {
namespace {

TEST(CausalLm, LinearStateAttributes) {
  const BuiltGraph graph(SmallConfig());
  const auto* state = graph.op("layers.1.attn").attributes_as_LinearState();
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->heads()->heads(), 4u);
  EXPECT_EQ(state->heads()->kv_heads(), 2u);
  EXPECT_EQ(state->feature_map(), static_cast<uint8_t>(FeatureMap::kGaussian));
  EXPECT_EQ(state->num_features(), 3u);
  EXPECT_EQ(state->qk_norm(), static_cast<uint8_t>(VectorNorm::kL2Outside));
  EXPECT_EQ(state->qk_norm_eps(), 1e-3f);
  EXPECT_EQ(state->gate(), static_cast<uint8_t>(Gate::kForget));
  EXPECT_EQ(state->den_mode(), static_cast<uint8_t>(DenMode::kClampMin));
  EXPECT_EQ(state->den_eps(), 1e-3f);
  EXPECT_EQ(state->scale(), 1.0f);
  EXPECT_EQ(graph.model().states()->Get(2)->name()->str(), "layers.1.attn.S");
  EXPECT_EQ(graph.model().states()->Get(2)->shape()->Get(1), 6u);

  Json config = SmallConfig();
  config["attention"] = {{"system", "rfa"},           {"feature_map", "arccos"}, {"num_features", 3}, {"normalize_qk", false},
                         {"norm_eps_mode", "inside"}, {"den_mode", "none"},      {"scale", 0.5}};
  const BuiltGraph plain(config);
  const auto* other = plain.op("layers.0.attn").attributes_as_LinearState();
  EXPECT_EQ(other->gate(), static_cast<uint8_t>(Gate::kNone));
  EXPECT_EQ(other->qk_norm(), static_cast<uint8_t>(VectorNorm::kNone));
  EXPECT_EQ(other->den_eps(), 1e-2f);
  EXPECT_EQ(other->scale(), 0.5f);
  EXPECT_EQ(plain.op("layers.0.attn").states()->size(), 1u);  // no z
  EXPECT_EQ(plain.inputs("layers.0.attn").size(), 3u);
  EXPECT_TRUE(plain.has("layers.0.attn.qkv_proj"));
}

TEST(CausalLm, SlotMemorySharesItsControl) {
  Json config = SmallConfig();
  config["attention"] = {{"system", "abc_mlp"}, {"num_slots", 5}, {"control_sharing", "model"}, {"logit_clamp", {-15, 15}}};
  const BuiltGraph shared(config, Precision::kInt8);
  EXPECT_EQ(shared.tensors("layers.0.attn.control_proj"), (Texts{"model.control_proj.weight"}));
  EXPECT_EQ(shared.op("layers.0.attn.control_proj").tensors()->Get(0), shared.op("layers.1.attn.control_proj").tensors()->Get(0));
  EXPECT_EQ(shared.inputs("layers.1.attn.control_proj"), (Texts{"layers.1.attn_norm[0, 8]"}));
  const auto* slots = shared.op("layers.0.attn").attributes_as_SlotMemory();
  EXPECT_EQ(slots->num_slots(), 5u);
  EXPECT_EQ(slots->logit_min(), -15.0f);
  EXPECT_EQ(slots->logit_max(), 15.0f);
  EXPECT_EQ(slots->scale(), std::sqrt(0.5f));
  const auto* k = shared.model().states()->Get(0)->shape();
  EXPECT_EQ(Texts({std::to_string(k->Get(0)), std::to_string(k->Get(1)), std::to_string(k->Get(2))}), (Texts{"2", "2", "5"}));

  config["attention"]["control_bias"] = true;
  EXPECT_EQ(BuiltGraph(config).tensors("layers.1.attn.control_proj"),
            (Texts{"model.control_proj.weight", "model.control_proj.bias"}));
  config["attention"].erase("control_bias");

  config["attention"].erase("control_sharing");
  config["attention"].erase("logit_clamp");
  const BuiltGraph own(config);
  EXPECT_EQ(own.tensors("layers.1.attn.control_proj"), (Texts{"model.layers.1.attn.control_proj.weight"}));
  EXPECT_EQ(own.op("layers.0.attn").attributes_as_SlotMemory()->logit_max(), std::numeric_limits<float>::infinity());
}

TEST(CausalLm, LogitsOfGatesAndWriteStrengths) {
  Json config = SmallConfig();
  config["attention"] = {{{"system", "deltanet"}}, {{"system", "gla"}}};
  const BuiltGraph graph(config);
  EXPECT_EQ(graph.inputs("layers.0.attn").back(), "layers.0.attn.qkvb_proj[16, 2]");
  EXPECT_EQ(graph.inputs("layers.1.attn").back(), "layers.1.attn.g_proj[0, 4]");
  // These have no bias, whatever attention_bias says.
  EXPECT_EQ(graph.tensors("layers.1.attn.g_proj"), (Texts{"model.layers.1.attn.g_proj.weight"}));
  Texts names;
  for (const WeightSpec& spec : graph.weights()) names.push_back(spec.name);
  EXPECT_EQ(std::count(names.begin(), names.end(), "model.layers.0.attn.b_proj.weight"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "model.layers.0.attn.b_proj.bias"), 0);
}

TEST(CausalLm, ABiasOfSomeProjections) {
  Json config = With(SmallConfig(), "attention_bias", {"v", "o"});
  config["attention"] = {{"system", "softmax"}, {"max_context", 7}};
  config["layer_blocks"] = {nullptr, {{"num_heads", 4}, {"num_kv_heads", 2}, {"attention_bias", {"k"}}}};
  const BuiltGraph graph(config);
  const std::string first = "model.layers.0.attn.", second = "model.layers.1.attn.";
  EXPECT_EQ(graph.tensors("layers.0.attn.qkv_proj"), (Texts{first + "qkv_proj.weight", first + "qkv_proj.bias"}));
  EXPECT_EQ(graph.tensors("layers.0.attn.o_proj"), (Texts{first + "o_proj.weight", first + "o_proj.bias"}));
  EXPECT_EQ(graph.tensors("layers.1.attn.o_proj"), (Texts{second + "o_proj.weight"}));
  Texts biases;
  for (const WeightSpec& spec : graph.weights()) {
    if (spec.name.find("attn.") != std::string::npos && spec.name.find("bias") != std::string::npos) biases.push_back(spec.name);
  }
  EXPECT_EQ(biases, (Texts{first + "v_proj.bias", first + "o_proj.bias", second + "k_proj.bias"}));
}

TEST(CausalLm, RandomSlotsComeFromAnOpOfTheirOwn) {
  Json config = SmallConfig();
  config["attention"] = {{"system", "abc_rd"}, {"num_slots", 5}, {"seed", 7}};
  const BuiltGraph graph(config);
  EXPECT_TRUE(graph.inputs("layers.1.attn.slots").empty());
  const auto* slots = graph.op("layers.1.attn.slots").attributes_as_RandomSlots();
  ASSERT_NE(slots, nullptr);
  EXPECT_EQ(slots->layer(), 1u);
  EXPECT_EQ(slots->seed(), 7u);
  EXPECT_EQ(graph.inputs("layers.1.attn").back(), "layers.1.attn.slots[0, 2]");
  const uint32_t value = graph.op("layers.1.attn.slots").outputs()->Get(0);
  EXPECT_EQ(graph.program().values()->Get(value)->dtype(), format::DType::I32);
}

TEST(CausalLm, StatesHaveTheirDtype) {
  Json config = SmallConfig();
  config["attention"] = {{"system", "softmax"}, {"max_context", 7}};
  ModelConfig parsed = ParseConfig(config.dump(), "config.json");
  SetStateTypes(format::DType::I8, /*force=*/false, &parsed);
  GraphBuilder builder(Precision::kF32);
  BuildModel(parsed, &builder);
  const auto buffer = BuildGraphBuffer(builder.graph(), TensorOffsets(builder.graph()));
  const auto& states = *format::GetModel(buffer.data())->states();
  ASSERT_EQ(states.size(), 6u);
  EXPECT_EQ(states.Get(1)->dtype(), format::DType::I8);
  EXPECT_EQ(states.Get(2)->dtype(), format::DType::F32);
  EXPECT_EQ(states.Get(5)->name()->str(), "layers.1.attn.scales");
}

TEST(CausalLm, Rope) {
  const BuiltGraph graph(With(With(SmallConfig(), "position_embedding", "rope"), "rope_theta", 99.0));
  EXPECT_TRUE(graph.inputs("rope_angles").empty());
  EXPECT_EQ(graph.op("rope_angles").attributes_as_RopeAngles()->theta(), 99.0f);
  EXPECT_EQ(graph.inputs("layers.1.attn.rope"), (Texts{"layers.1.attn.qkvg_proj[0, 12]", "rope_angles[0, 2]"}));
  EXPECT_EQ(graph.inputs("layers.1.attn"), (Texts{"layers.1.attn.rope[0, 8]", "layers.1.attn.rope[8, 4]",
                                                  "layers.1.attn.qkvg_proj[12, 4]", "layers.1.attn.qkvg_proj[16, 2]"}));
}

TEST(CausalLm, RopeFrequencies) {
  Json config = With(With(SmallConfig(), "position_embedding", "rope"), "rope_frequencies", Json::array({0.1}));
  const BuiltGraph graph(config);
  const auto* frequencies = graph.op("rope_angles").attributes_as_RopeAngles()->frequencies();
  ASSERT_EQ(frequencies->size(), 1u);
  EXPECT_EQ(frequencies->Get(0), 0.1);
  config["rope_frequencies"] = {-0.1};
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"rope_frequencies", "-0.1 is not a number of 0 or more"}));
  config["rope_frequencies"] = {0.1};
  config["position_embedding"] = "none";
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"rope_frequencies", "position_embedding is not \"rope\""}));
}

TEST(CausalLm, RopeOfLayers) {
  Json config = With(With(SmallConfig(), "position_embedding", "rope"), "rope_theta", 99.0);
  const BuiltGraph graph(With(config, "layer_rope", {false, 7.0}));
  EXPECT_FALSE(graph.has("layers.0.attn.rope"));
  EXPECT_EQ(graph.inputs("layers.1.attn.rope").at(1), "rope_angles[0, 2]");
  EXPECT_EQ(graph.op("rope_angles").attributes_as_RopeAngles()->theta(), 7.0f);
  EXPECT_FALSE(graph.has("rope_angles.1"));
  const BuiltGraph both(With(config, "layer_rope", {nullptr, 7.0}));
  EXPECT_EQ(both.op("rope_angles").attributes_as_RopeAngles()->theta(), 99.0f);
  EXPECT_EQ(both.inputs("layers.1.attn.rope").at(1), "rope_angles.1[0, 2]");
  for (const Json& wrong : {Json::array({1.0}), Json::array({1.0, "x"}), Json::array({1.0, 0}), Json(true)}) {
    EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "layer_rope", wrong)}; }, {"layer_rope"}));
  }
}

TEST(CausalLm, NormsOfQAndK) {
  Json config = With(With(SmallConfig(), "position_embedding", "rope"), "qk_norm", "head");
  const BuiltGraph graph(config);
  EXPECT_EQ(graph.inputs("layers.1.attn.q_norm"), (Texts{"layers.1.attn.qkvg_proj[0, 8]"}));
  EXPECT_EQ(graph.inputs("layers.1.attn.k_norm"), (Texts{"layers.1.attn.qkvg_proj[8, 4]"}));
  EXPECT_EQ(graph.inputs("layers.1.attn.k_rope").at(0), "layers.1.attn.k_norm[0, 4]");
  EXPECT_EQ(graph.inputs("layers.1.attn").at(0), "layers.1.attn.q_rope[0, 8]");
  const auto width = [](const BuiltGraph& built, const char* op) {
    return built.model().tensors()->Get(built.op(op).tensors()->Get(0))->shape()->Get(0);
  };
  EXPECT_EQ(width(graph, "layers.1.attn.q_norm"), 2u);
  EXPECT_EQ(width(BuiltGraph(With(config, "qk_norm", "full")), "layers.1.attn.q_norm"), 8u);
}

TEST(CausalLm, HeadsOfValuesThatShareKeys) {
  Json config = With(With(SmallConfig(), "num_heads", 4), "num_key_heads", 2);
  config.update({{"num_kv_heads", 4},
                 {"head_dim", 2},
                 {"value_head_dim", 3},
                 {"attention_conv", true},
                 {"output_norm", "head"},
                 {"output_norm_eps", 0.5},
                 {"output_gate", "sigmoid"},
                 {"output_gate_low_rank", true},
                 {"output_gate_rank", 5},
                 {"output_gate_bias", true}});
  config["attention"] = {{"system", "gated_deltanet"}};
  const BuiltGraph graph(config);
  const std::string a = "layers.0.attn";
  EXPECT_EQ(graph.inputs(a + ".conv"), (Texts{a + ".qkvgb_proj[0, 20]"}));
  EXPECT_EQ(graph.inputs(a),
            (Texts{a + ".conv[0, 4]", a + ".conv[4, 4]", a + ".conv[8, 12]", a + ".qkvgb_proj[20, 4]", a + ".qkvgb_proj[24, 4]"}));
  EXPECT_EQ(graph.op(a).attributes_as_LinearState()->key_heads(), 2u);
  EXPECT_EQ(graph.inputs(a + ".o_gate"), (Texts{a + ".o_gate_proj.1[0, 12]", a + ".o_norm[0, 12]"}));
  EXPECT_EQ(graph.op(a + ".o_gate").attributes_as_SiluMul()->kind(), format::ActivationKind::Sigmoid);
  EXPECT_EQ(graph.tensors(a + ".o_gate_proj.1"),
            (Texts{"model." + a + ".o_gate_proj.1.weight", "model." + a + ".o_gate_proj.1.bias"}));

  EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "num_key_heads", 3)}; }, {"num_key_heads", "3 must divide num_heads = 4"}));
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{With(config, "num_kv_heads", 2)}; }, {"num_key_heads", "num_kv_heads = 2 must be"}));
  config["attention"] = {{"system", "softmax"}, {"max_context", 9}};
  EXPECT_TRUE(FailsWith([&] { BuiltGraph{config}; }, {"system", "\"softmax\" has q and k for every head"}));
}

}  // namespace
}  // namespace tarn::convert
