#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/convert/attention.h"
#include "tools/convert/error.h"
#include "tools/convert/graph_builder.h"
#include "tools/convert/json.h"
#include "tools/convert/mapped_file.h"
#include "tools/convert/model_writer.h"
#include "tools/convert/safetensors.h"

namespace tarn::golden {
namespace {

using convert::Fail;
using convert::Json;

// Where golden files and config.json have different names for a system.
constexpr struct {
  const char* golden;
  const char* config;
} kSystemNames[] = {{"rfa_gate", "rfa"}, {"delta_rule_attn_norm", "delta_rule"}};

// The states of an op, and what golden files call them.
constexpr struct {
  const char* state;
  const char* golden;
} kStateNames[] = {{"S", "state_S"}, {"z", "state_z"},      {"m", "state_m"},    {"K", "state_K"},
                   {"V", "state_V"}, {"mass", "state_lse"}, {"mass", "state_z"}, {"mass", "state_count"}};

// What the graph here calls sigma as a factor of the projection: golden files hold the product.
constexpr char kFoldedSigma[] = "folded sigma";

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), map_(path), parsed_(convert::ParseSafetensors(map_.data(), map_.size(), path)) {}

  const std::string& Text(const char* key) const {
    const auto found = parsed_.metadata.find(key);
    if (found == parsed_.metadata.end()) Fail(path_, ": __metadata__ has no \"", key, "\"");
    return found->second;
  }
  Json Object(const char* key) const { return convert::ParseJson(Text(key), path_ + ": " + key); }

  bool Has(const std::string& name) const { return parsed_.tensors.count(name) != 0; }
  GoldenTensor Tensor(const std::string& name) const {
    const convert::StoredTensor& stored = Stored(name);
    if (stored.dtype == convert::StoredType::kI32) Fail(path_, ": tensor \"", name, "\" is I32");
    GoldenTensor tensor{name, stored.shape, std::vector<float>(stored.elements)};
    convert::ReadAsF32(stored, 0, stored.elements, tensor.values.data());
    return tensor;
  }
  std::vector<int32_t> Integers(const std::string& name) const {
    const convert::StoredTensor& stored = Stored(name);
    if (stored.dtype != convert::StoredType::kI32) Fail(path_, ": tensor \"", name, "\" is not I32");
    std::vector<int32_t> values(stored.elements);
    std::memcpy(values.data(), stored.data, values.size() * sizeof(int32_t));
    return values;
  }
  std::vector<std::string> StateNames() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : parsed_.tensors) {
      if (name.rfind("state_", 0) == 0) names.push_back(name);
    }
    return names;
  }
  const std::string& path() const { return path_; }

 private:
  const convert::StoredTensor& Stored(const std::string& name) const {
    const auto found = parsed_.tensors.find(name);
    if (found == parsed_.tensors.end()) Fail(path_, ": has no tensor \"", name, "\"");
    return found->second;
  }

  const std::string path_;
  const convert::MappedFile map_;
  const convert::Safetensors parsed_;
};

// The op's constants.
class GoldenWeights : public convert::WeightReader {
 public:
  explicit GoldenWeights(const File& file) : file_(file) {}

  void Read(const convert::WeightSpec& spec, uint64_t first, uint64_t count, float* out) const override {
    if (spec.name == kFoldedSigma) {
      std::fill_n(out, count, 1.0f);
      return;
    }
    const GoldenTensor tensor = file_.Tensor(spec.name);
    if (!std::equal(tensor.shape.begin(), tensor.shape.end(), spec.shape.begin(), spec.shape.end())) {
      Fail(file_.path(), ": tensor \"", spec.name, "\" has shape ", convert::ShapeText(tensor.shape), ", the attributes want ",
           convert::ShapeText(spec.shape));
    }
    std::copy_n(tensor.values.begin() + static_cast<std::ptrdiff_t>(first), count, out);
  }

 private:
  const File& file_;
};

std::string ConfigName(const std::string& system) {
  for (const auto& name : kSystemNames) {
    if (system == name.golden) return name.config;
  }
  return system;
}

format::Heads TakeHeads(Json* attributes, const std::string& where) {
  Json heads = Json::object();
  for (const char* key : {"num_heads", "num_kv_heads", "head_dim", "value_dim"}) {
    if (attributes->contains(key)) heads[key] = (*attributes)[key];
    attributes->erase(key);
  }
  convert::Fields fields(heads, where);
  const uint32_t num_heads = fields.Size("num_heads"), kv_heads = fields.Size("num_kv_heads");
  return format::Heads(num_heads, kv_heads, fields.Size("head_dim"), fields.Size("value_dim"));
}

// What config.json would say: without what the layer knows, with what a golden file leaves to the length of its inputs.
Json ConfigObject(const File& file, Json attributes, const std::string& system, uint64_t tokens) {
  attributes.erase("causal");
  attributes["system"] = system;
  if (system == "softmax") attributes["max_context"] = tokens;
  // One token may be less than a block.
  if (system == "memory_compressed") attributes["max_context"] = std::max(tokens, attributes.value("compression_factor", tokens));
  if (file.Has("global_index")) {
    const std::vector<int32_t> positions = file.Integers("global_index");
    attributes["global_positions"] = std::vector<uint32_t>(positions.begin(), positions.end());
  }
  return attributes;
}

// [heads, rows, columns] -> [heads, columns, rows]
GoldenTensor Transposed(const GoldenTensor& tensor) {
  GoldenTensor out = tensor;
  const uint64_t rows = tensor.shape[1], columns = tensor.shape[2];
  std::swap(out.shape[1], out.shape[2]);
  for (uint64_t i = 0; i < tensor.values.size(); ++i) {
    const uint64_t head = i / (rows * columns), row = i / columns % rows, column = i % columns;
    out.values[(head * columns + column) * rows + row] = tensor.values[i];
  }
  return out;
}

std::vector<GoldenState> States(const File& file, const convert::AttentionOp& op) {
  std::vector<GoldenState> states;
  for (const std::string& name : file.StateNames()) {
    const size_t before = states.size();
    for (const auto& names : kStateNames) {
      if (name != names.golden) continue;
      for (uint32_t i = 0; i < op.states.size(); ++i) {
        if (op.states[i].name != names.state) continue;
        // Slot memory keeps its keys with the slots innermost.
        const bool transposed = op.type == format::OpAttributes::SlotMemory && op.states[i].name == "K";
        GoldenTensor want = transposed ? Transposed(file.Tensor(name)) : file.Tensor(name);
        if (!std::equal(want.shape.begin(), want.shape.end(), op.states[i].shape.begin(), op.states[i].shape.end())) {
          Fail(file.path(), ": ", name, " does not fit the op's state ", convert::ShapeText(op.states[i].shape));
        }
        states.push_back({i, std::move(want)});
      }
    }
    if (states.size() != before + 1) Fail(file.path(), ": ", name, " is ", states.size() - before, " states of the op");
  }
  return states;
}

Tolerance ReadTolerance(const Json& object, const std::string& where) {
  convert::Fields fields(object, where);
  return {fields.Number("abs"), fields.Number("rel")};
}

// A program of the op alone. Its inputs are the op's, or the hidden rows that q, k and v are projected from.
class OpProgram {
 public:
  OpProgram(const File& file, GoldenCase* golden) : file_(file), golden_(*golden) {}

  std::vector<uint8_t> Build(convert::AttentionOp op, const format::Heads& heads) {
    builder_.BeginProgram("decode");
    std::vector<format::Slice> inputs = file_.Has("x") ? ProjectedInputs() : std::vector{Input("q"), Input("k"), Input("v")};
    for (const convert::LogitInput& logit : op.logits) inputs.push_back(Input(logit.name));
    if (op.drawn) inputs.push_back(IntegerInput(op.drawn->name));
    for (convert::AttentionTensor& tensor : op.tensors) {
      for (size_t i = 1; i < tensor.parts.size(); ++i) tensor.parts[i].name = kFoldedSigma;
    }
    const format::Slice o = builder_.AddAttention("attn", "", op, heads, std::move(inputs));
    convert::Graph& graph = builder_.graph();
    graph.name = golden_.name;
    graph.vocab_size = 1;  // there are no tokens, and a reader wants at least one
    builder_.program().num_inputs = static_cast<uint32_t>(golden_.inputs.size());
    builder_.program().outputs = {o.value()};
    convert::MemorySink sink;
    convert::WriteModel(graph, GoldenWeights(file_), &sink);
    return sink.bytes();
  }

 private:
  format::Slice AddInput(const std::string& name, const void* values, uint64_t count, format::DType dtype) {
    if (golden_.tokens == 0 || count == 0 || count % golden_.tokens != 0) {
      Fail(file_.path(), ": tensor \"", name, "\" has ", count, " elements for ", golden_.tokens, " tokens");
    }
    const auto* bytes = static_cast<const uint8_t*>(values);
    const uint64_t width = count / golden_.tokens;
    golden_.inputs.push_back({width * sizeof(float), {bytes, bytes + count * sizeof(float)}});
    return builder_.AddValue(name, static_cast<uint32_t>(width), format::Time::Tokens, dtype);
  }
  format::Slice Input(const std::string& name) {
    const GoldenTensor tensor = file_.Tensor(name);
    return AddInput(name, tensor.values.data(), tensor.values.size(), format::DType::F32);
  }
  format::Slice IntegerInput(const std::string& name) {
    const std::vector<int32_t> values = file_.Integers(name);
    return AddInput(name, values.data(), values.size(), format::DType::I32);
  }
  std::vector<format::Slice> ProjectedInputs() {
    const format::Slice x = Input("x");
    std::vector<format::Slice> slices;
    for (const char* name : {"q", "k", "v"}) {
      const std::string weight = std::string(name) + "_weight";
      const GoldenTensor tensor = file_.Tensor(weight);
      const convert::WeightSpec spec{weight, {tensor.shape.begin(), tensor.shape.end()}, convert::Init::kLinear};
      slices.push_back(
          builder_.AddOp(name, format::OpAttributes::FullyConnected,
                         [](flatbuffers::FlatBufferBuilder& builder) { return format::CreateFullyConnected(builder).Union(); }, {x},
                         spec.shape[0], {builder_.AddMatrix(weight, {spec})}));
    }
    return slices;
  }

  const File& file_;
  GoldenCase& golden_;
  convert::GraphBuilder builder_{convert::Precision::kF32};
};

}  // namespace

GoldenCase LoadGoldenCase(const std::string& path) {
  const File file(path);
  GoldenCase golden;
  golden.name = file.Text("case");
  const std::string system = ConfigName(file.Text("system"));
  if (file.Text("family") == "noncausal") {
    golden.skip = "not causal";
    return golden;
  }
  const GoldenTensor rows = file.Tensor(file.Has("x") ? "x" : "q");
  golden.tokens = rows.shape.empty() ? 0 : rows.shape[0];
  Json attributes = file.Object("attributes");
  const std::string where = path + ": attributes";
  const format::Heads heads = TakeHeads(&attributes, where);
  // The width of the model is in `scale` already; a golden file knows neither biases nor positions.
  const convert::AttentionContext context{heads, 0, heads.heads() * heads.head_dim(), false, false};
  const convert::AttentionOp op = convert::ParseAttention(ConfigObject(file, attributes, system, golden.tokens), where, context);

  const Json tolerance = file.Object("tolerance");
  golden.output_tolerance = ReadTolerance(tolerance, path + ": tolerance");
  golden.state_tolerance =
      tolerance.contains("state") ? ReadTolerance(tolerance["state"], path + ": tolerance: state") : golden.output_tolerance;
  for (const Json& chunk : file.Object("chunks")) golden.chunks.push_back(chunk.get<uint64_t>());
  golden.output = file.Tensor("o");
  golden.states = States(file, op);
  golden.model = OpProgram(file, &golden).Build(op, heads);
  return golden;
}

}  // namespace tarn::golden
