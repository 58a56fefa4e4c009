#include "tools/convert/config/state_type.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/convert/convert_testing.h"
#include "tools/convert/config/config.h"
#include "tools/convert/summary.h"

namespace tarn::convert {
namespace {

using format::DType;

// The layers of a model with these attention objects, a kv head per query head.
ModelConfig Layers(const std::vector<std::string>& objects) {
  Json config = SmallConfig();
  config["num_kv_heads"] = 4;
  config["attention_bias"] = false;
  config["num_layers"] = objects.size();
  config["attention"] = Json::array();
  for (const std::string& object : objects) config["attention"].push_back(Json::parse(object));
  return ParseConfig(config.dump(), "config.json");
}

// "S:F16 z:F32"
std::string States(const std::string& object, DType type, bool force = false) {
  ModelConfig config = Layers({object});
  SetStateTypes(type, force, &config);
  std::string text;
  for (const GraphState& state : config.decoder[0].states) {
    text += (text.empty() ? "" : " ") + state.name + ":" + format::EnumNameDType(state.dtype);
  }
  return text;
}

const char* const kGated = R"({"system": "rfa", "feature_map": "gaussian", "num_features": 3, "gate": "forget"})";
const char* const kSoftmax = R"({"system": "softmax", "max_context": 9})";
const char* const kAbc = R"({"system": "abc_mlp", "num_slots": 3})";

TEST(StateType, F16WhereStatesDecayOrAreWrittenOnce) {
  EXPECT_EQ(States(kGated, DType::F32), "S:F32 z:F32");
  EXPECT_EQ(States(kGated, DType::F16), "S:F16 z:F32");
  EXPECT_EQ(States(R"({"system": "retnet"})", DType::F16), "S:F16");
  EXPECT_EQ(States(R"({"system": "gla"})", DType::F16), "S:F16");
  EXPECT_EQ(States(R"({"system": "gsa", "num_slots": 3})", DType::F16), "K:F16 V:F16");
  EXPECT_EQ(States(R"({"system": "l2g_global", "global_positions": [3]})", DType::F16), "K:F16 V:F16");
  EXPECT_EQ(States(kSoftmax, DType::F16), "K:F16 V:F16");
}

TEST(StateType, Int8RowsHaveScales) {
  EXPECT_EQ(States(kSoftmax, DType::I8), "K:I8 V:I8 scales:F32");
  EXPECT_EQ(States(R"({"system": "strided_window", "window": 6, "stride": 4, "num_strided": 3})", DType::I8),
            "K:I8 V:I8 scales:F32 strided_K:I8 strided_V:I8 strided_scales:F32");
  EXPECT_EQ(
      States(R"({"system": "compressive_transformer", "segment_len": 6, "mem_len": 9, "cmem_len": 4, "compression_ratio": 3})",
             DType::I8),
      "K:I8 V:I8 scales:F32 memory_K:I8 memory_V:I8 memory_scales:F32 compressed_K:I8 compressed_V:I8 compressed_scales:F32");
  ModelConfig config = Layers({kSoftmax});
  SetStateTypes(DType::I8, false, &config);
  EXPECT_EQ(config.decoder[0].states[2].shape, (std::vector<uint32_t>{4, 2, 9}));
}

TEST(StateType, WaitingTokensStayF32) {
  const char* const blocks = R"({"system": "memory_compressed", "compression_factor": 3, "max_context": 11})";
  EXPECT_EQ(States(blocks, DType::F16), "K:F16 V:F16 waiting_K:F32 waiting_V:F32");
  EXPECT_EQ(States(blocks, DType::I8), "K:I8 V:I8 scales:F32 waiting_K:F32 waiting_V:F32");
}

TEST(StateType, RefusalsHaveTheMeasuredReason) {
  const struct {
    const char* object;
    const char* f16;
    const char* int8;
  } cases[] = {
      {R"({"system": "rfa", "feature_map": "arccos", "num_features": 3})", "(relative error", "relative error 0.1"},
      {R"({"system": "linear_transformer"})", "round away", "relative error 0.1"},
      {R"({"system": "deltanet"})", "the delta rule has no decay", "relative error 0.1"},
      {R"({"system": "gated_deltanet"})", "a decay nearer to 1", "relative error 0.1"},
      {R"({"system": "rg_lru"})", "a decay nearer to 1", "relative error 0.1"},
      {R"({"system": "diagonal_recurrence"})", "a decay nearer to 1", "relative error 0.1"},
      {kAbc, "stop moving: rms error 0.26", "6 to 8 %"},
      {R"({"system": "abc_mlp", "num_slots": 3, "normalization": "frozen"})", "round away", "relative error 0.1"},
      {R"({"system": "abc_rd", "num_slots": 3})", "round away", "relative error 0.1"},
      {R"({"system": "luna_causal", "num_slots": 3})", "stop moving", "6 to 8 %"},
      {R"({"system": "clustering_online", "num_slots": 3})", "stop moving", "6 to 8 %"},
      {kGated, nullptr, "relative error 0.1"},
      {R"({"system": "gsa", "num_slots": 3})", nullptr, "relative error 0.1"},
      {R"({"system": "l2g_global", "global_positions": [3]})", nullptr, "no int8 form"},
  };
  for (const auto& c : cases) {
    const std::string system = Json::parse(c.object)["system"];
    if (c.f16 != nullptr) {
      EXPECT_TRUE(FailsWith([&] { States(c.object, DType::F16); }, {"--state f16: layer 0", system, c.f16, "--force"}));
    }
    EXPECT_NO_THROW(States(c.object, DType::F16, /*force=*/true));
    for (const bool force : {false, true}) {
      EXPECT_TRUE(FailsWith([&] { States(c.object, DType::I8, force); },
                            {"--state int8: layer 0", system, c.int8, "--force is for f16 alone"}));
    }
  }
}

// Half precision cannot tell these decays from 1.
TEST(StateType, F16IsRefusedWhereNothingDecays) {
  for (const char* object :
       {R"({"system": "retnet", "decay": [0.9, 0.9, 0.9, 1.0]})", R"({"system": "gla", "gate_clamp_min": 0})",
        R"({"system": "gla", "gate_normalizer": 1e6})",
        R"({"system": "linear_attention", "feature_map": "identity", "gate": "vector", "gate_normalizer": 1e9})"}) {
    ModelConfig config = Layers({object});
    EXPECT_TRUE(FailsWith([&] { SetStateTypes(DType::F16, false, &config); }, {"nearer to 1 than half precision resolves"}))
        << object;
  }
}

TEST(StateType, ForceStoresSumsInF16) {
  EXPECT_EQ(States(R"({"system": "performer_trig", "num_features": 3})", DType::F16, true), "S:F16 z:F32 m:F32");
  EXPECT_EQ(States(kAbc, DType::F16, true), "K:F16 V:F16 mass:F32");
}

TEST(StateType, EveryLayerOfAHybridHasToAllowIt) {
  ModelConfig config = Layers({kGated, kSoftmax, kAbc});
  EXPECT_TRUE(FailsWith([&] { SetStateTypes(DType::F16, false, &config); }, {"--state f16: layer 2 (abc_mlp)"}));
  config = Layers({kSoftmax, kGated});
  EXPECT_TRUE(FailsWith([&] { SetStateTypes(DType::I8, false, &config); }, {"--state int8: layer 1 (rfa)"}));
  EXPECT_NO_THROW(SetStateTypes(DType::F16, false, &config));
}

TEST(StateType, SourcesBearEveryTypeAndTheOthersStayF32) {
  Json config = SmallConfig();
  config.erase("attention");
  config.erase("num_layers");
  config.update({{"task", "seq2seq"},
                 {"encoder_layers", 1},
                 {"decoder_layers", 2},
                 {"encoder_attention", Json::parse(kSoftmax)},
                 {"decoder_attention", {Json::parse(kAbc), Json::parse(kSoftmax)}},
                 {"cross_attention", {Json::parse(kAbc), Json::parse(kSoftmax)}}});
  ModelConfig parsed = ParseConfig(config.dump(), "config.json");
  SetStateTypes(DType::I8, false, &parsed);
  const auto text = [](const AttentionOp& op) {
    std::string states;
    for (const GraphState& state : op.states) states += state.name + ":" + format::EnumNameDType(state.dtype) + " ";
    return states;
  };
  EXPECT_EQ(text(parsed.decoder[0]), "K:F32 V:F32 mass:F32 ");
  EXPECT_EQ(text(parsed.decoder[1]), "K:I8 V:I8 scales:F32 ");
  EXPECT_EQ(text(parsed.cross[0]), "K:I8 V:I8 scales:F32 ");
  EXPECT_EQ(parsed.cross[0].states[2].shape, (std::vector<uint32_t>{2, 5}));  // d + n
  EXPECT_EQ(text(parsed.cross[1]), "K:I8 V:I8 scales:F32 ");
  EXPECT_EQ(StatesText(parsed), "decoder: f32 x 1, int8 x 1; cross: int8 x 2");
  EXPECT_EQ(SystemsText(parsed), "encoder: softmax x 1; decoder: abc_mlp x 1, softmax x 1; cross: abc_mlp x 1, softmax x 1");
}

TEST(StateType, EncodersHaveNone) {
  Json config = SmallConfig();
  config.update({{"task", "masked_lm"}, {"attention", Json::parse(kSoftmax)}});
  ModelConfig parsed = ParseConfig(config.dump(), "config.json");
  EXPECT_TRUE(FailsWith([&] { SetStateTypes(DType::F16, false, &parsed); }, {"--state f16", "has no state"}));
  EXPECT_EQ(StatesText(parsed), "none");
}

}  // namespace
}  // namespace tarn::convert
