// What a model file may say of a causal convolution, and of the norm of parts of a row.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/changed_model.h"

namespace tarn {
namespace {

using convert::Graph;
using test::FindOp;
using test::SetTensor;

const std::string kConfig = test::ConfigText(test::kRfa, "none", test::kBlockOfHeads);

Status Opened(const std::function<void(Graph*)>& change) { return test::Opened(kConfig, change); }
void ExpectRefused(const std::string& words, const std::function<void(Graph*)>& change) {
  test::ExpectRefused(kConfig, words, change);
}

constexpr char kConv[] = "layers.0.attn.conv";
constexpr uint32_t kWidth = 4 * 8 + 2 * 8 + 2 * 12;  // of q, k and v

TEST(CausalConvOp, RefusesTensorsAndStatesOfOtherShapes) {
  EXPECT_TRUE(Opened([](Graph*) {}).ok());
  for (const uint32_t taps : {1u, 9u, 1000u}) {
    ExpectRefused("weight has " + std::to_string(taps) + " taps, 2 to 8 expected", [&](Graph* graph) {
      SetTensor(graph, FindOp(graph, kConv).tensors[0], {taps, kWidth});
    });
  }
  ExpectRefused("weight", [](Graph* graph) { SetTensor(graph, FindOp(graph, kConv).tensors[0], {4, kWidth - 1}); });
  ExpectRefused("weight", [](Graph* graph) { SetTensor(graph, FindOp(graph, kConv).tensors[0], {4}); });
  ExpectRefused("bias", [](Graph* graph) { SetTensor(graph, FindOp(graph, kConv).tensors[1], {kWidth + 1}); });
  ExpectRefused("rows", [](Graph* graph) { graph->states[FindOp(graph, kConv).states[0]].shape = {4, kWidth}; });
  ExpectRefused("rows", [](Graph* graph) { graph->states[FindOp(graph, kConv).states[0]].dtype = format::DType::F16; });
  ExpectRefused("tensors", [](Graph* graph) { FindOp(graph, kConv).tensors.clear(); });
}

TEST(NormOp, TakesParts) {
  const std::string norm = "layers.0.attn.o_norm";
  const auto resized = [&](uint32_t width) {
    return [&norm, width](Graph* graph) { SetTensor(graph, FindOp(graph, norm).tensors[0], {width}); };
  };
  for (const uint32_t width : {1u, 12u, 24u, 48u}) EXPECT_TRUE(Opened(resized(width)).ok()) << width;
  for (const uint32_t width : {5u, 49u, 96u}) ExpectRefused("weight", resized(width));
}

}  // namespace
}  // namespace tarn
