// Builds a model of golden inputs, constants and outputs.
#ifndef TARN_TESTS_GOLDEN_GOLDEN_MODEL_H_
#define TARN_TESTS_GOLDEN_GOLDEN_MODEL_H_

#include <string>

#include "runtime/model/model.h"
#include "tests/golden/golden_file.h"
#include "tools/convert/build/graph_builder.h"

namespace tarn::golden {

class ModelBuilder {
 public:
  explicit ModelBuilder(const File& file) : file_(file) {}

  convert::GraphBuilder& graph() { return builder_; }

  // A new program, that runs on so many tokens.
  void Begin(Stage stage, uint64_t tokens);
  // A tensor of the file as an input of the program, before its first op: a row per token, or where it has another number of rows,
  // that number always.
  format::Slice Input(const std::string& name);
  // An output of the program, and the tensor that it has to equal.
  void Output(format::Slice value, const std::string& tensor);
  // A state that has to equal `want`.
  void State(uint32_t index, GoldenTensor want) { model_.states.push_back({index, std::move(want)}); }

  GoldenModel Finish();

 private:
  const File& file_;
  GoldenModel model_;
  GoldenProgram* program_ = nullptr;
  convert::GraphBuilder builder_{convert::Precision::kF32};
};

}  // namespace tarn::golden

#endif  // TARN_TESTS_GOLDEN_GOLDEN_MODEL_H_
