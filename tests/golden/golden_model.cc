#include "tests/golden/golden_model.h"

#include <utility>

#include "tools/convert/json/error.h"
#include "tools/convert/writer/model_writer.h"

namespace tarn::golden {
namespace {

template <typename T>
std::vector<uint8_t> BytesOf(const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return {bytes, bytes + values.size() * sizeof(T)};
}

}  // namespace

void ModelBuilder::Begin(Stage stage, uint64_t tokens) {
  builder_.BeginProgram(StageName(stage));
  program_ = stage == Stage::kEncode ? &model_.encode : &model_.decode;
  program_->tokens = tokens;
}

format::Slice ModelBuilder::Input(const std::string& name) {
  const bool integer = file_.IsInteger(name);
  std::vector<uint8_t> bytes = integer ? BytesOf(file_.Integers(name)) : BytesOf(file_.Tensor(name).values);
  const uint64_t rows = file_.Rows(name);
  const size_t row_bytes = bytes.size() / rows;
  program_->inputs.push_back({row_bytes, std::move(bytes)});
  builder_.program().num_inputs = static_cast<uint32_t>(program_->inputs.size());
  const bool fixed = rows != program_->tokens;
  return builder_.AddValue(name, static_cast<uint32_t>(row_bytes / sizeof(float)),
                           fixed ? format::Time::Fixed : format::Time::Tokens, integer ? format::DType::I32 : format::DType::F32,
                           fixed ? static_cast<uint32_t>(rows) : 0);
}

void ModelBuilder::Output(format::Slice value, const std::string& tensor) {
  program_->outputs.push_back(file_.Tensor(tensor));
  builder_.program().outputs.push_back(value.value());
}

GoldenModel ModelBuilder::Finish() {
  convert::Graph& graph = builder_.graph();
  graph.name = file_.Text("case");
  graph.vocab_size = 1;  // there are no ids, and a reader wants at least one
  if (model_.encode.tokens != 0) {
    graph.task = model_.decode.tokens != 0 ? format::Task::Seq2Seq : format::Task::Classification;
  }
  convert::MemorySink sink;
  convert::WriteModel(graph, GoldenWeights(file_), &sink);
  model_.file = sink.bytes();
  return std::move(model_);
}

}  // namespace tarn::golden
