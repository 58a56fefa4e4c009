// What a model file may say of activations, gates, norms of groups and sinusoids: the ops refuse what they could not compute.
#include <gtest/gtest.h>
#include <tarn/tarn.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/models.h"

namespace tarn {
namespace {

using flatbuffers::FlatBufferBuilder;

std::string Config(const std::string& act, const std::string& more) {
  return R"({"vocab_size": 256, "hidden_size": 8, "num_layers": 1, "num_heads": 2, "intermediate_size": 6, "norm": "rmsnorm",
    "norm_eps": 1e-5, "tokenizer": "bytes", "attention": {"system": "softmax", "max_context": 9}, "hidden_act": ")" +
         act + "\"" + more + "}";
}

// What opening says of a model in which one op was changed; "" if it opens.
template <typename Change>
std::string Refusal(const std::string& config_text, const std::string& op_name, const Change& change) {
  convert::GraphBuilder builder(convert::Precision::kF32);
  convert::BuildModel(convert::ParseConfig(config_text, "test"), &builder);
  bool found = false;
  for (convert::GraphOp& op : builder.program().ops) {
    if (op.name != op_name) continue;
    found = true;
    change(&op);
  }
  EXPECT_TRUE(found) << op_name;
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), convert::RandomWeights(1), &sink);
  tarn_source source = TARN_SOURCE_INIT;
  source.buffer = sink.bytes().data();
  source.length_bytes = sink.bytes().size();
  tarn_model* model = nullptr;
  tarn_error error{};
  const bool opened = tarn_model_open(&source, nullptr, &model, &error) == TARN_OK;
  tarn_model_close(model);
  return opened ? "" : error.message;
}

convert::AttributeWriter Gate(format::ActivationKind kind) {
  return [kind](FlatBufferBuilder& builder) { return format::CreateSiluMul(builder, kind).Union(); };
}

TEST(BlockAttributes, GatesAreOfFiveKinds) {
  for (int kind = 0; kind <= static_cast<int>(format::ActivationKind::MAX) + 1; ++kind) {
    const auto as_kind = static_cast<format::ActivationKind>(kind);
    const std::string message =
        Refusal(Config("swiglu", ""), "layers.0.mlp.act", [&](convert::GraphOp* op) { op->attributes = Gate(as_kind); });
    const bool known = as_kind == format::ActivationKind::Silu || as_kind == format::ActivationKind::Gelu ||
                       as_kind == format::ActivationKind::GeluTanh || as_kind == format::ActivationKind::Sigmoid ||
                       as_kind == format::ActivationKind::Linear;
    EXPECT_EQ(message.find("gate of kind") == std::string::npos, known) << kind << ": " << message;
    EXPECT_EQ(message.empty(), known) << message;
  }
}

TEST(BlockAttributes, LinearIsForGatesAlone) {
  const std::string message = Refusal(Config("relu", ""), "layers.0.mlp.act", [](convert::GraphOp* op) {
    op->attributes = [](FlatBufferBuilder& builder) {
      return format::CreateActivation(builder, format::ActivationKind::Linear, 0).Union();
    };
  });
  EXPECT_NE(message.find("unknown activation 8"), std::string::npos) << message;
}

TEST(BlockAttributes, ACapIsPositive) {
  for (const float cap : {1.0f, 0.0f, -1.0f, NAN, INFINITY}) {
    const std::string message = Refusal(Config("relu", ""), "layers.0.mlp.act", [&](convert::GraphOp* op) {
      op->attributes = [cap](FlatBufferBuilder& builder) {
        return format::CreateActivation(builder, format::ActivationKind::SoftCap, cap).Union();
      };
    });
    EXPECT_EQ(message.empty(), cap == 1.0f) << message;
    EXPECT_EQ(message.find("cap is") == std::string::npos, cap == 1.0f) << message;
  }
}

TEST(BlockAttributes, AsManySinusoidsAsPairs) {
  const std::vector<std::vector<double>> lists = {{1, 0.5, 0, 2}, {1}, {1, 2, 3, -1}, {1, 2, 3, HUGE_VAL}, {1, 2, 3, NAN}};
  for (const std::vector<double>& frequencies : lists) {
    const auto change = [&](convert::GraphOp* op) {
      op->attributes = [frequencies](FlatBufferBuilder& builder) {
        return format::CreateAddSinusoidDirect(builder, &frequencies).Union();
      };
    };
    const std::string message = Refusal(Config("relu", R"(, "position_embedding": "sinusoidal")"), "positions", change);
    EXPECT_EQ(message.empty(), &frequencies == &lists[0]) << message;
    EXPECT_EQ(message.find("frequenc") == std::string::npos, &frequencies == &lists[0]) << message;
  }
}

// A weight that does not divide the width is no group's.
TEST(BlockAttributes, GroupsFillTheWidth) {
  const std::string config = Config("relu", R"(, "qk_norm": "head", "head_dim": 4)");
  EXPECT_EQ(Refusal(config, "layers.0.attn.q_norm", [](convert::GraphOp*) {}), "");
  const std::string message = Refusal(config, "layers.0.attn.q_norm", [](convert::GraphOp* op) { op->tensors = {0}; });
  EXPECT_NE(message.find("weight"), std::string::npos) << message;
}

}  // namespace
}  // namespace tarn
