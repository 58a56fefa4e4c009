// What a model file may say of a diagonal recurrence, of a block-diagonal layer, and of a product.
#include "variants/recurrence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/support/changed_model.h"
#include "tests/support/loaded.h"

namespace tarn {
namespace {

using convert::Graph;
using test::ExpectRefused;
using test::FindOp;
using test::Opened;
using test::SetTensor;

constexpr uint32_t kWidth = 32;
const std::string kGated = test::ConfigText(R"({"system": "diagonal_recurrence", "gate_floor": true})", "none", test::kPlainHeads);
const std::string kRates =
    test::ConfigText(R"({"system": "diagonal_recurrence", "decay": "exponential"})", "none", test::kPlainHeads);
const std::string kRgLru = test::ConfigText(R"({"system": "rg_lru"})", "none", test::kPlainHeads);
const std::string kShortConv = test::ConfigText(R"({"system": "short_conv"})", "none", test::kPlainHeads);

constexpr char kOp[] = "layers.0.attn";

TEST(DiagonalRecurrenceOp, RefusesTensorsAndStatesOfOtherShapes) {
  EXPECT_TRUE(Opened(kGated, [](Graph*) {}).ok());
  EXPECT_TRUE(Opened(kGated, [](Graph* graph) { FindOp(graph, kOp).tensors.clear(); }).ok());
  ExpectRefused(kRates, "tensors", [](Graph* graph) { FindOp(graph, kOp).tensors.clear(); });
  for (const uint32_t width : {1u, kWidth - 1, kWidth + 1}) {
    ExpectRefused(kGated, "floor", [&](Graph* graph) { SetTensor(graph, FindOp(graph, kOp).tensors[0], {width}); });
    ExpectRefused(kRates, "rate", [&](Graph* graph) { SetTensor(graph, FindOp(graph, kOp).tensors[0], {width}); });
    ExpectRefused(kGated, "'layers.0.attn.h'", [&](Graph* graph) { graph->states[FindOp(graph, kOp).states[0]].shape = {width}; });
    ExpectRefused(kGated, "gate", [&](Graph* graph) {
      const format::Slice gate = FindOp(graph, kOp).inputs[1];
      FindOp(graph, kOp).inputs[1] = format::Slice(gate.value(), 0, width);
    });
  }
  ExpectRefused(kGated, "'layers.0.attn.h'",
                [](Graph* graph) { graph->states[FindOp(graph, kOp).states[0]].dtype = format::DType::F16; });
}

// Every step on denormals would take a hundred times as long, for ever.
TEST(DiagonalRecurrenceOp, AStateDoesNotEndInDenormals) {
  const test::Loaded model(kGated);
  const test::SessionPointer session = model.New({1, 1, 1, 1});
  const int32_t token = 1;
  ASSERT_TRUE(session->Prefill(&token, 1).ok());
  const Span<uint8_t> state = session->instance().state_bytes(0);
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (size_t at = 0; at < state.size(); at += sizeof(float)) std::memcpy(&state[at], &smallest, sizeof(smallest));
  ASSERT_TRUE(session->Prefill(&token, 1).ok());
  for (size_t at = 0; at < state.size(); at += sizeof(float)) {
    float h;
    std::memcpy(&h, &state[at], sizeof(h));
    EXPECT_NE(std::fpclassify(h), FP_SUBNORMAL) << at;
  }
}

TEST(DiagonalRecurrenceOp, RefusesKindsThatItDoesNotKnow) {
  const auto with = [](uint8_t decay, uint8_t input) {
    return [=](Graph* graph) {
      FindOp(graph, kOp).attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
        return format::CreateDiagonalRecurrence(builder, decay, input).Union();
      };
    };
  };
  EXPECT_TRUE(Opened(kRates, with(1, 2)).ok());
  for (const uint8_t kind : {uint8_t{2}, uint8_t{255}}) ExpectRefused(kRates, "unknown decay", with(kind, 0));
  for (const uint8_t kind : {uint8_t{3}, uint8_t{255}}) ExpectRefused(kRates, "unknown input", with(0, kind));
}

TEST(BlockDenseOp, RefusesBlocksThatDoNotFit) {
  const std::string gate = "model.layers.0.attn.g_proj";
  const auto shaped = [&](std::vector<uint32_t> shape) {
    return [&gate, shape](Graph* graph) { SetTensor(graph, FindOp(graph, gate).tensors[0], shape); };
  };
  EXPECT_TRUE(Opened(kRgLru, [](Graph*) {}).ok());
  EXPECT_TRUE(Opened(kRgLru, shaped({1, kWidth, kWidth})).ok());
  EXPECT_TRUE(Opened(kRgLru, shaped({kWidth, 1, 1})).ok());
  for (const uint32_t blocks : {3u, 5u, 64u}) ExpectRefused(kRgLru, "blocks, a divisor", shaped({blocks, 8, 8}));
  ExpectRefused(kRgLru, "weight", shaped({4, 8, 4}));
  ExpectRefused(kRgLru, "weight", shaped({4, 64}));
  ExpectRefused(kRgLru, "bias", [&](Graph* graph) { SetTensor(graph, FindOp(graph, gate).tensors[1], {kWidth + 1}); });
  ExpectRefused(kRgLru, "tensors", [&](Graph* graph) { FindOp(graph, gate).tensors.clear(); });
}

TEST(SiluMulOp, TakesProducts) {
  EXPECT_TRUE(Opened(kShortConv, [](Graph*) {}).ok());
  ExpectRefused(kShortConv, "second operand", [](Graph* graph) {
    convert::GraphOp& op = FindOp(graph, "model.layers.0.attn.read");
    op.inputs[1] = format::Slice(op.inputs[1].value(), 0, kWidth - 1);
  });
}

}  // namespace
}  // namespace tarn
