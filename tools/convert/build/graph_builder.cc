#include "tools/convert/build/graph_builder.h"

#include <algorithm>
#include <utility>

#include "tools/convert/graph/quantize.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

format::DType DTypeOf(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return format::DType::F32;
    case Precision::kF16:
      return format::DType::F16;
    case Precision::kInt8:
      return format::DType::I8;
    case Precision::kInt4:
      return format::DType::I4;
    case Precision::kInt3:
      return format::DType::I3;
    case Precision::kInt2:
      return format::DType::I2;
  }
  return format::DType::F32;
}

}  // namespace

format::Slice GraphBuilder::AddValue(const std::string& name, uint32_t width, format::Time time, format::DType dtype,
                                     uint32_t rows) {
  if (width > kMaxWidth) Fail("value \"", name, "\": a width of ", width, " is above ", kMaxWidth);
  program().values.push_back({name, dtype, width, time, rows});
  return format::Slice(static_cast<uint32_t>(program().values.size() - 1), 0, width);
}

format::Slice GraphBuilder::AddValueLike(format::Slice model, const std::string& name, uint32_t width) {
  const GraphValue& value = program().values[model.value()];
  return AddValue(name, width, value.time, format::DType::F32, value.rows);
}

void GraphBuilder::Use(const std::vector<WeightSpec>& specs) {
  for (const WeightSpec& spec : specs) {
    const auto [entry, added] = used_.emplace(spec.name, spec.shape);
    if (added) {
      weights_.push_back(spec);
    } else if (entry->second != spec.shape) {
      Fail("tensor \"", spec.name, "\" is expected as ", ShapeText(entry->second), " and as ", ShapeText(spec.shape));
    }
  }
}

uint32_t GraphBuilder::AddTensor(GraphTensor tensor) {
  Use(tensor.parts);
  const auto [entry, added] = tensor_of_.emplace(tensor.name, static_cast<uint32_t>(graph_.tensors.size()));
  if (added) {
    graph_.tensors.push_back(std::move(tensor));
  } else if (graph_.tensors[entry->second].shape != tensor.shape) {
    Fail("tensor \"", tensor.name, "\" is expected as ", ShapeText(graph_.tensors[entry->second].shape), " and as ",
         ShapeText(tensor.shape));
  }
  return entry->second;
}

void GraphBuilder::CheckRules() const {
  std::vector<std::string> names;
  for (const Matrix& matrix : matrices_) names.push_back(matrix.name);
  rules_.CheckUsed(names);
}

Matrix GraphBuilder::ChoosePrecision(const GraphTensor& tensor, Precision narrowest) {
  std::vector<std::string> names = {tensor.name};
  for (const WeightSpec& part : tensor.parts) names.push_back(part.name);
  bool explicitly = false;
  Precision precision = rules_.Choose(names, &explicitly);
  if (!explicitly) precision = std::min(precision, narrowest);
  if (!IsBlockwise(precision) || tensor.shape[1] % kScaleBlock == 0) return {tensor.name, precision, precision};
  if (explicitly) {
    Fail("tensor \"", tensor.name, "\": rows of ", tensor.shape[1], " are no multiple of ", kScaleBlock, ", which ",
         NameOf(precision), " needs; --keep ", tensor.name, "=int8 is possible");
  }
  return {tensor.name, Precision::kInt8, precision};
}

uint32_t GraphBuilder::AddMatrix(const std::string& name, std::vector<WeightSpec> rows, Precision narrowest) {
  std::vector<uint32_t> shape = rows[0].shape;
  for (size_t i = 1; i < rows.size(); ++i) shape[0] += rows[i].shape[0];
  GraphTensor tensor{name, format::DType::F32, shape, std::move(rows), nullptr, -1};
  const Matrix matrix = ChoosePrecision(tensor, narrowest);
  tensor.dtype = DTypeOf(matrix.precision);
  if (tensor_of_.count(name) == 0) matrices_.push_back(matrix);
  const uint32_t index = AddTensor(std::move(tensor));
  GraphTensor scales{name + ".scales", format::DType::F32, {shape[0]}, {}, nullptr, -1};
  if (matrix.precision == Precision::kInt3) Need("int3");
  if (matrix.precision == Precision::kInt2) Need("int2");
  if (IsBlockwise(matrix.precision)) {
    scales.dtype = format::DType::BF16;
    scales.shape.push_back(shape[1] / static_cast<uint32_t>(kScaleBlock));
  }
  if (matrix.precision == Precision::kInt8 || IsBlockwise(matrix.precision)) {
    graph_.tensors[index].scales = static_cast<int32_t>(AddTensor(std::move(scales)));
  }
  return index;
}

uint32_t GraphBuilder::AddConstant(const std::string& name, const std::vector<uint32_t>& shape, std::vector<WeightSpec> parts,
                                   Fold fold, format::DType dtype) {
  return AddTensor({name, dtype, shape, std::move(parts), std::move(fold), -1});
}

uint32_t GraphBuilder::AddIntegers(const std::string& name, std::vector<int32_t> values) {
  const std::vector<uint32_t> shape = {static_cast<uint32_t>(values.size())};
  return AddTensor(
      {name, format::DType::I32, shape, {}, nullptr, -1, std::make_shared<const std::vector<int32_t>>(std::move(values))});
}

std::vector<uint32_t> GraphBuilder::AddNormTensors(const std::string& name, format::NormKind kind, uint32_t width) {
  std::vector<uint32_t> tensors = {AddConstant(name + ".weight", {width}, {{name + ".weight", {width}, Init::kOne}})};
  if (kind == format::NormKind::LayerNorm) {
    tensors.push_back(AddConstant(name + ".bias", {width}, {{name + ".bias", {width}, Init::kZero}}));
  }
  return tensors;
}

format::Slice GraphBuilder::AddOp(const std::string& name, format::OpAttributes type, AttributeWriter attributes,
                                  std::vector<format::Slice> inputs, uint32_t width, std::vector<uint32_t> tensors) {
  const format::Slice output = inputs.empty() ? AddValue(name, width) : AddValueLike(inputs[0], name, width);
  AddOp({name, type, std::move(attributes), std::move(inputs), {output.value()}, std::move(tensors), {}});
  return output;
}

uint32_t GraphBuilder::AddDenseBias(const std::string& name, const std::vector<DenseRows>& parts) {
  std::vector<WeightSpec> specs;
  std::vector<uint32_t> begins;  // where each spec's rows begin; rows of projections without a bias are zero
  uint32_t rows = 0;
  for (const DenseRows& part : parts) {
    if (part.bias) {
      specs.push_back({part.name + ".bias", {part.rows}, part.bias_init});
      begins.push_back(rows);
    }
    rows += part.rows;
  }
  Fold fold;
  if (specs.size() != parts.size()) {
    fold = [begins, rows](const std::vector<std::vector<float>>& biases) {
      std::vector<float> out(rows, 0.0f);
      for (size_t i = 0; i < biases.size(); ++i) std::copy(biases[i].begin(), biases[i].end(), out.begin() + begins[i]);
      return out;
    };
  }
  return AddConstant(name, {rows}, std::move(specs), std::move(fold));
}

format::Slice GraphBuilder::AddDense(const std::string& name, const std::string& tensor, const std::vector<DenseRows>& parts,
                                     format::Slice x, Precision narrowest) {
  std::vector<WeightSpec> specs;
  bool bias = false;
  for (const DenseRows& part : parts) {
    specs.push_back({part.name + ".weight", {part.rows, x.width()}, part.weight_init});
    bias = bias || part.bias;
  }
  std::vector<uint32_t> tensors = {AddMatrix(tensor + ".weight", std::move(specs), narrowest)};
  if (bias) tensors.push_back(AddDenseBias(tensor + ".bias", parts));
  const GraphTensor& weight = graph_.tensors[tensors[0]];
  if (weight.scales >= 0 && x.width() > kMaxInt8Inputs) {
    Fail("tensor \"", weight.name, "\": rows of ", x.width(), " are too long for int8 and narrower types, which end at ",
         kMaxInt8Inputs);
  }
  const uint32_t width = weight.shape[0];
  return AddOp(
      name, format::OpAttributes::FullyConnected,
      [](flatbuffers::FlatBufferBuilder& builder) { return format::CreateFullyConnected(builder).Union(); }, {x}, width,
      std::move(tensors));
}

format::Slice GraphBuilder::AddDrawn(const std::string& name, const DrawnInput& drawn) {
  const format::Slice output = AddValue(name + ".slots", drawn.width, format::Time::Tokens, format::DType::I32);
  AddOp({name + ".slots", drawn.type, drawn.attributes, {}, {output.value()}, {}, {}});
  return output;
}

std::vector<uint32_t> GraphBuilder::AddAttentionTensors(const std::string& prefix, const AttentionOp& op,
                                                        const std::string& shared_prefix) {
  std::vector<uint32_t> tensors;
  for (const AttentionTensor& tensor : op.tensors) {
    const std::string& before = tensor.shared ? shared_prefix : prefix;
    std::vector<WeightSpec> parts = tensor.parts;
    for (WeightSpec& part : parts) part.name = (tensor.shared_parts ? shared_prefix : before) + part.name;
    tensors.push_back(AddConstant(before + tensor.name, tensor.shape, std::move(parts), tensor.fold, tensor.dtype));
  }
  return tensors;
}

uint32_t GraphBuilder::AddState(GraphState state) {
  graph_.states.push_back(std::move(state));
  return static_cast<uint32_t>(graph_.states.size() - 1);
}

std::vector<uint32_t> GraphBuilder::AddAttentionStates(const std::string& name, const AttentionOp& op) {
  std::vector<uint32_t> states;
  for (const char* feature : op.features) Need(feature);
  for (GraphState state : op.states) {
    state.name = name + "." + state.name;
    states.push_back(AddState(std::move(state)));
  }
  return states;
}

format::Slice GraphBuilder::AddAttention(const std::string& name, const std::string& prefix, const AttentionOp& op,
                                         const format::Heads& heads, std::vector<format::Slice> inputs,
                                         const std::string& shared_prefix) {
  const format::Slice output = AddValueLike(inputs[0], name, heads.heads() * heads.value_dim());
  AddOp({name,
         op.type,
         op.attributes,
         std::move(inputs),
         {output.value()},
         AddAttentionTensors(prefix, op, shared_prefix),
         AddAttentionStates(name, op)});
  return output;
}

std::vector<uint32_t> GraphBuilder::AddAttentionWrite(const std::string& name, const std::string& prefix, const AttentionOp& op,
                                                      std::vector<format::Slice> inputs) {
  const std::vector<uint32_t> states = AddAttentionStates(name, op);
  AddOp({name, op.type, op.attributes, std::move(inputs), {}, AddAttentionTensors(prefix, op), states});
  return states;
}

format::Slice GraphBuilder::AddAttentionRead(const std::string& name, const std::string& prefix, const AttentionOp& op,
                                             const format::Heads& heads, format::Slice q, std::vector<uint32_t> states) {
  const format::Slice output = AddValueLike(q, name, heads.heads() * heads.value_dim());
  AddOp({name, op.type, op.read_attributes, {q}, {output.value()}, AddAttentionTensors(prefix, op), std::move(states)});
  return output;
}

}  // namespace tarn::convert
