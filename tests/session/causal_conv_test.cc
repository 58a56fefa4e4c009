// What a model file may say of a causal convolution, and of the norm of parts of a row.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

using convert::Graph;
using convert::GraphOp;

GraphOp& FindOp(Graph* graph, const std::string& name) {
  for (GraphOp& op : graph->programs[0].ops) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << "no op " << name;
  return graph->programs[0].ops[0];
}

// Zeros of that shape in place of what the converter made.
void SetTensor(Graph* graph, uint32_t index, std::vector<uint32_t> shape) {
  size_t elements = 1;
  for (const uint32_t size : shape) elements *= size;
  graph->tensors[index].shape = std::move(shape);
  graph->tensors[index].parts.clear();
  graph->tensors[index].fold = [elements](const std::vector<std::vector<float>>&) { return std::vector<float>(elements); };
}

// Of a session of a model with a block around its attention, changed by `change`.
Status Opened(const std::function<void(Graph*)>& change) {
  convert::ModelConfig config = convert::ParseConfig(test::ConfigText(test::kRfa, "none", test::kBlockOfHeads), "test");
  convert::GraphBuilder builder(convert::Precision::kF32);
  convert::BuildModel(config, &builder);
  change(&builder.graph());
  const convert::RandomWeights weights(/*seed=*/1);
  convert::MemorySink sink;
  convert::WriteModel(builder.graph(), weights, &sink);
  const std::vector<uint8_t> file = sink.bytes();
  Result<LoadedModel> model =
      LoadedModel::Open(FileMap(), {file.data(), file.size()}, {Verify::kOnce, nullptr, true, DefaultAllocator()});
  if (!model.ok()) return model.status();
  TARN_RETURN_IF_ERROR(model.value().Pack());
  Result<Session*> session = Session::Create(model.value(), {1, 8, 1, 1}, {});
  if (session.ok()) Session::Destroy(session.value());
  return session.status();
}

void ExpectRefused(const std::string& words, const std::function<void(Graph*)>& change) {
  const Status status = Opened(change);
  EXPECT_EQ(status.code(), TARN_BAD_FORMAT) << words;
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
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
