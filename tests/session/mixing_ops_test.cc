// What a model file may say of skips, blends, convolutions of several mixes, norms of groups and linear states with removal keys.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/changed_model.h"

namespace tarn {
namespace {

using convert::Graph;
using test::FindOp;
using test::SetTensor;

const std::string kSteps = test::ConfigText(R"({"system": "mamba2"})", "none", test::kBlockOfSteps);
const std::string kShifts = test::ConfigText(R"({"system": "rwkv7"})", "none", test::kBlockOfShifts);
constexpr uint32_t kHidden = 32, kHeads = 4, kHeadDim = 8, kValueDim = 12;

auto Resized(const std::string& op, size_t tensor, std::vector<uint32_t> shape) {
  return [=](Graph* graph) { SetTensor(graph, FindOp(graph, op).tensors[tensor], shape); };
}

TEST(SkipOp, RefusesOtherHeadsAndWeights) {
  const std::string skip = "layers.0.attn.skip";
  EXPECT_TRUE(test::Opened(kSteps, [](Graph*) {}).ok());
  test::ExpectRefused(kSteps, "weight", Resized(skip, 0, {kHeads + 1}));
  test::ExpectRefused(kShifts, "weight", Resized(skip, 0, {kHeads}));
  test::ExpectRefused(kShifts, "weight", Resized(skip, 0, {kHeads, kHeadDim + 1}));
  for (const std::string& config : {kSteps, kShifts}) {
    const bool products = config == kShifts;
    for (const uint32_t heads : {0u, 5u, 4294967295u}) {
      test::ExpectRefused(config, "a divisor of the width 48", [&](Graph* graph) {
        FindOp(graph, skip).attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
          return format::CreateSkip(builder, heads, products).Union();
        };
      });
    }
    test::ExpectRefused(config, "inputs", [&](Graph* graph) { FindOp(graph, skip).inputs.pop_back(); });
    test::ExpectRefused(config, "v", [&](Graph* graph) {
      format::Slice& v = FindOp(graph, skip).inputs[1];
      v = format::Slice(v.value(), v.begin(), v.width() - 1);
    });
    test::ExpectRefused(config, "tensors", [&](Graph* graph) { FindOp(graph, skip).tensors.clear(); });
  }
  test::ExpectRefused(kShifts, "k", [&](Graph* graph) {
    format::Slice& k = FindOp(graph, skip).inputs[3];
    k = format::Slice(k.value(), k.begin(), k.width() - 1);
  });
}

TEST(BlendOp, RefusesOperandsOfOtherWidths) {
  const std::string with_z = "layers.1.attn.v_blend", with_weight = "layers.0.attn.k_blend";
  EXPECT_TRUE(test::Opened(kShifts, [](Graph*) {}).ok());
  for (size_t input = 0; input < 3; ++input) {
    test::ExpectRefused(kShifts, "expected", [&](Graph* graph) {
      format::Slice& slice = FindOp(graph, with_z).inputs[input];
      slice = format::Slice(slice.value(), slice.begin(), slice.width() - 1);
    });
  }
  test::ExpectRefused(kShifts, "inputs", [&](Graph* graph) { FindOp(graph, with_z).inputs.resize(1); });
  test::ExpectRefused(kShifts, "c", Resized(with_weight, 0, {kHeads * kHeadDim - 1}));
}

// Seven mixes of a row: q, k, v, two gates of the attention, and the gate of its output.
TEST(CausalConvOp, TakesSeveralMixes) {
  const std::string shift = "layers.0.attn.shift";
  test::ExpectRefused(kShifts, "weight", Resized(shift, 0, {2, 5 * kHidden}));
  test::ExpectRefused(kShifts, "weight", Resized(shift, 0, {2, kHidden}));
  test::ExpectRefused(kShifts, "x", [&](Graph* graph) {
    format::Slice& x = FindOp(graph, shift).inputs[0];
    x = format::Slice(x.value(), x.begin(), kHidden - 1);
  });
  test::ExpectRefused(kShifts, "rows", [&](Graph* graph) {
    graph->states[FindOp(graph, shift).states[0]].shape = {1, 6 * kHidden};
  });
}

TEST(NormOp, TakesGroupsWithWeightsOfTheirOwn) {
  const std::string norm = "layers.0.attn.o_norm";
  const auto grouped = [&](uint32_t group) {
    return [&norm, group](Graph* graph) {
      FindOp(graph, norm).attributes = [=](flatbuffers::FlatBufferBuilder& builder) {
        return format::CreateNorm(builder, format::NormKind::LayerNorm, 1e-4f, group).Union();
      };
    };
  };
  for (const uint32_t group : {1u, 12u, 48u}) EXPECT_TRUE(test::Opened(kShifts, grouped(group)).ok()) << group;
  for (const uint32_t group : {5u, 96u}) test::ExpectRefused(kShifts, "group is", grouped(group));
  test::ExpectRefused(kShifts, "weight", Resized(norm, 0, {kValueDim}));
  test::ExpectRefused(kShifts, "bias", Resized(norm, 1, {kValueDim}));
}

TEST(LinearStateOp, RefusesRemovalKeysThatDoNotFit) {
  const std::string attention = "layers.0.attn";
  test::ExpectRefused(kShifts, "removal", Resized(attention, 0, {kHeads, kHeadDim + 1}));
  test::ExpectRefused(kShifts, "inputs", [&](Graph* graph) { FindOp(graph, attention).inputs.pop_back(); });
  for (const size_t input : {3, 4, 5}) {
    test::ExpectRefused(kShifts,
                        input == 3   ? "gate"
                        : input == 4 ? "beta"
                                     : "removal key",
                        [&](Graph* graph) {
                          format::Slice& slice = FindOp(graph, attention).inputs[input];
                          slice = format::Slice(slice.value(), slice.begin(), slice.width() - 1);
                        });
  }
}

}  // namespace
}  // namespace tarn
