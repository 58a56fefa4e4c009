#include "tools/convert/graph_buffer.h"

#include <string>

#include "tools/convert/error.h"

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
    return format::CreateStateDirect(*builder, state.name.c_str(), state.dtype, &state.shape);
  });
}

Offset<format::Program> Decode(FlatBufferBuilder* builder, const Graph& graph) {
  const auto values = Tables(builder, graph.values, [&](const GraphValue& value) {
    return format::CreateValueDirect(*builder, value.name.c_str(), value.dtype, value.width, value.time);
  });
  const auto ops = Tables(builder, graph.ops, [&](const GraphOp& op) {
    const Offset<void> attributes = op.attributes(*builder);
    return format::CreateOpDirect(*builder, op.name.c_str(), op.type, attributes, &op.inputs, &op.outputs, &op.tensors, &op.states);
  });
  const auto outputs = builder->CreateVector(graph.outputs);
  return format::CreateProgram(*builder, builder->CreateString("decode"), graph.num_inputs, outputs, values, ops);
}

}  // namespace

std::vector<uint64_t> TensorOffsets(const Graph& graph) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const GraphTensor& tensor : graph.tensors) {
    const uint64_t offset = (end + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    offsets.push_back(offset);
    end = offset + ElementCount(tensor.shape) * (tensor.dtype == format::DType::I8 ? 1 : sizeof(float));
  }
  return offsets;
}

flatbuffers::DetachedBuffer BuildGraphBuffer(const Graph& graph, const std::vector<uint64_t>& offsets) {
  FlatBufferBuilder builder;
  const auto tensors = Tensors(&builder, graph, offsets);
  const auto states = States(&builder, graph);
  const std::vector<Offset<format::Program>> programs = {Decode(&builder, graph)};
  const auto metadata = format::CreateMetadataDirect(builder, graph.name.c_str(), graph.precision.c_str(), graph.source.c_str());
  const auto tokenizer = format::CreateTokenizer(builder, graph.tokenizer);
  const auto program_list = builder.CreateVector(programs);
  const auto model = format::CreateModel(builder, /*required_features=*/0, graph.vocab_size, graph.first_position, tokenizer,
                                         metadata, tensors, states, program_list);
  format::FinishModelBuffer(builder, model);
  if (builder.GetSize() >= uint64_t{1} << 31) Fail("the graph has ", builder.GetSize(), " bytes: the format ends at 2 GiB");
  return builder.Release();
}

}  // namespace tarn::convert
