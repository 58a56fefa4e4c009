// A small model whose graph a test has changed: what loading it and creating a session say.
#ifndef TARN_TESTS_SUPPORT_CHANGED_MODEL_H_
#define TARN_TESTS_SUPPORT_CHANGED_MODEL_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn::test {

inline convert::GraphOp& FindOp(convert::Graph* graph, const std::string& name) {
  for (convert::GraphOp& op : graph->programs[0].ops) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << "no op " << name;
  return graph->programs[0].ops[0];
}

// Zeros of that shape in place of what the converter made.
inline void SetTensor(convert::Graph* graph, uint32_t index, std::vector<uint32_t> shape) {
  size_t elements = 1;
  for (const uint32_t size : shape) elements *= size;
  graph->tensors[index].shape = std::move(shape);
  graph->tensors[index].parts.clear();
  graph->tensors[index].fold = [elements](const std::vector<std::vector<float>>&) { return std::vector<float>(elements); };
}

// Of a session of the model of that config.json, changed by `change`.
inline Status Opened(const std::string& config_text, const std::function<void(convert::Graph*)>& change) {
  convert::ModelConfig config = convert::ParseConfig(config_text, "test");
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

inline void ExpectRefused(const std::string& config_text, const std::string& words,
                          const std::function<void(convert::Graph*)>& change) {
  const Status status = Opened(config_text, change);
  EXPECT_EQ(status.code(), TARN_BAD_FORMAT) << words;
  EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << status.message();
}

}  // namespace tarn::test

#endif  // TARN_TESTS_SUPPORT_CHANGED_MODEL_H_
