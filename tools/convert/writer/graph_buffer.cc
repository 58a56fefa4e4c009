#include "tools/convert/writer/graph_buffer.h"

#include <algorithm>
#include <string>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// The tables that `make` creates for `items`, as a vector of the buffer.
template <typename Item, typename F>
auto Tables(FlatBufferBuilder* builder, const std::vector<Item>& items, const F& make) {
  std::vector<decltype(make(items[0]))> tables;
  tables.reserve(items.size());
  for (const Item& item : items) tables.push_back(make(item));
  return builder->CreateVector(tables);
}

auto Tensors(FlatBufferBuilder* builder, const Graph& graph, const std::vector<uint64_t>& offsets) {
  size_t index = 0;
  return Tables(builder, graph.tensors, [&](const GraphTensor& tensor) {
    return format::CreateTensorDirect(*builder, tensor.name.c_str(), tensor.dtype, &tensor.shape, offsets[index++], tensor.scales);
  });
}

auto States(FlatBufferBuilder* builder, const Graph& graph) {
  return Tables(builder, graph.states, [&](const GraphState& state) {
    return format::CreateStateDirect(*builder, state.name.c_str(), state.dtype, &state.shape, state.owner, state.source_axis);
  });
}

Offset<format::Program> Program(FlatBufferBuilder* builder, const GraphProgram& program) {
  const auto values = Tables(builder, program.values, [&](const GraphValue& value) {
    return format::CreateValueDirect(*builder, value.name.c_str(), value.dtype, value.width, value.time, value.rows);
  });
  const auto ops = Tables(builder, program.ops, [&](const GraphOp& op) {
    const Offset<void> attributes = op.attributes(*builder);
    return format::CreateOpDirect(*builder, op.name.c_str(), op.type, attributes, &op.inputs, &op.outputs, &op.tensors, &op.states);
  });
  const auto outputs = builder->CreateVector(program.outputs);
  return format::CreateProgram(*builder, builder->CreateString(program.name), program.num_inputs, outputs, values, ops);
}

uint32_t BitsOf(format::DType dtype) {
  switch (dtype) {
    case format::DType::I2:
      return 2;
    case format::DType::I3:
      return 3;
    case format::DType::I4:
      return 4;
    case format::DType::I8:
      return 8;
    case format::DType::F16:
    case format::DType::BF16:
      return 16;
    case format::DType::F32:
    case format::DType::I32:
      return 32;
    case format::DType::I64:
      return 64;
  }
  return 0;
}

bool IsDenseWeight(const Graph& graph, size_t tensor) {
  const auto reads = [tensor](const GraphOp& op) {
    return op.type == format::OpAttributes::FullyConnected && op.tensors[0] == tensor;
  };
  return std::any_of(graph.programs.begin(), graph.programs.end(),
                     [&](const GraphProgram& program) { return std::any_of(program.ops.begin(), program.ops.end(), reads); });
}

// What older readers would misread. An F16 embedding table they could read.
std::vector<std::string> RequiredFeatures(const Graph& graph) {
  bool int4 = false, f16_weights = false;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    int4 = int4 || graph.tensors[i].dtype == format::DType::I4;
    f16_weights = f16_weights || (graph.tensors[i].dtype == format::DType::F16 && IsDenseWeight(graph, i));
  }
  std::vector<std::string> features;
  if (int4) features.push_back("int4");
  if (f16_weights) features.push_back("f16_weights");
  if (graph.task != format::Task::CausalLm) features.push_back("programs");
  if (graph.tokenizer_writer) features.push_back("tokenizer");
  features.insert(features.end(), graph.features.begin(), graph.features.end());
  return features;
}

}  // namespace

uint64_t TensorBytes(const GraphTensor& tensor) { return ElementCount(tensor.shape) * BitsOf(tensor.dtype) / 8; }

std::vector<uint64_t> TensorOffsets(const Graph& graph) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const GraphTensor& tensor : graph.tensors) {
    const uint64_t offset = (end + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    offsets.push_back(offset);
    end = offset + TensorBytes(tensor);
  }
  return offsets;
}

flatbuffers::DetachedBuffer BuildGraphBuffer(const Graph& graph, const std::vector<uint64_t>& offsets) {
  FlatBufferBuilder builder;
  const auto tensors = Tensors(&builder, graph, offsets);
  const auto states = States(&builder, graph);
  std::vector<Offset<format::Program>> programs;
  for (const GraphProgram& program : graph.programs) programs.push_back(Program(&builder, program));
  const auto metadata = format::CreateMetadataDirect(builder, graph.name.c_str(), graph.precision.c_str(), graph.source.c_str(),
                                                     graph.loss.scored, graph.loss.nats_f32, graph.loss.nats);
  const auto tokenizer =
      graph.tokenizer_writer ? graph.tokenizer_writer(&builder) : format::CreateTokenizer(builder, graph.tokenizer);
  const auto chat = graph.chat_writer ? graph.chat_writer(&builder) : flatbuffers::Offset<format::ChatTemplate>();
  const auto program_list = builder.CreateVector(programs);
  const std::vector<std::string> features = RequiredFeatures(graph);
  const auto feature_list = features.empty() ? 0 : builder.CreateVectorOfStrings(features);
  const auto model = format::CreateModel(builder, feature_list, graph.vocab_size, graph.first_position, tokenizer, metadata,
                                         tensors, states, program_list, graph.task, graph.source_vocab_size, graph.bos_token,
                                         graph.eos_token, graph.mask_token, chat);
  format::FinishModelBuffer(builder, model);
  if (builder.GetSize() >= uint64_t{1} << 31) Fail("the graph has ", builder.GetSize(), " bytes: the format ends at 2 GiB");
  return builder.Release();
}

}  // namespace tarn::convert
