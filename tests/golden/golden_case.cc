#include "tests/golden/golden_case.h"

#include <algorithm>
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
} kSystemNames[] = {{"rfa_gate", "rfa"}};

// The states of an op, and what golden files call them.
constexpr struct {
  const char* state;
  const char* golden;
} kStateNames[] = {{"S", "state_S"}, {"z", "state_z"},      {"K", "state_K"},
                   {"V", "state_V"}, {"mass", "state_lse"}, {"mass", "state_z"}};

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
    const auto found = parsed_.tensors.find(name);
    if (found == parsed_.tensors.end()) Fail(path_, ": has no tensor \"", name, "\"");
    const convert::StoredTensor& stored = found->second;
    if (stored.dtype == convert::StoredType::kI32) Fail(path_, ": tensor \"", name, "\" is I32");
    GoldenTensor tensor{name, stored.shape, std::vector<float>(stored.elements)};
    convert::ReadAsF32(stored, 0, stored.elements, tensor.values.data());
    return tensor;
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
  const std::string path_;
  const convert::MappedFile map_;
  const convert::Safetensors parsed_;
};

// The op's constants. Golden files hold the effective projection: sigma is in it already.
class GoldenWeights : public convert::WeightReader {
 public:
  explicit GoldenWeights(const File& file) : file_(file) {}

  void Read(const convert::WeightSpec& spec, uint64_t first, uint64_t count, float* out) const override {
    if (spec.name == "sigma") {
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
Json ConfigObject(Json attributes, const std::string& system, uint64_t tokens) {
  attributes.erase("causal");
  attributes["system"] = system;
  if (system == "softmax") {
    attributes.erase("mask_empty");  // a full cache has no empty rows
    attributes["max_context"] = tokens;
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

// A program whose inputs are the op's inputs.
std::vector<uint8_t> BuildModel(const File& file, const convert::AttentionOp& op, const format::Heads& heads, GoldenCase* golden) {
  convert::GraphBuilder builder(convert::Precision::kF32);
  std::vector<format::Slice> slices;
  std::vector<std::string> names = {"q", "k", "v"};
  for (const convert::LogitInput& logit : op.logits) names.push_back(logit.name);
  for (const std::string& name : names) {
    GoldenTensor tensor = file.Tensor(name);
    if (tensor.shape.empty() || tensor.shape[0] != golden->tokens || golden->tokens == 0) {
      Fail(file.path(), ": tensor \"", name, "\" has shape ", convert::ShapeText(tensor.shape));
    }
    slices.push_back(builder.AddValue(name, static_cast<uint32_t>(tensor.values.size() / golden->tokens)));
    golden->inputs.push_back(std::move(tensor));
  }
  const format::Slice o = builder.AddAttention("attn", "", op, heads, slices);
  convert::Graph& graph = builder.graph();
  graph.name = golden->name;
  graph.vocab_size = 1;  // there are no tokens, and a reader wants at least one
  graph.num_inputs = static_cast<uint32_t>(slices.size());
  graph.outputs = {o.value()};
  convert::MemorySink sink;
  convert::WriteModel(graph, GoldenWeights(file), &sink);
  return sink.bytes();
}

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
  if (!convert::IsSupportedSystem(system)) {
    golden.skip = "system " + system + " is not supported by this version";
    return golden;
  }
  const GoldenTensor q = file.Tensor("q");
  golden.tokens = q.shape.empty() ? 0 : q.shape[0];
  Json attributes = file.Object("attributes");
  const std::string where = path + ": attributes";
  const format::Heads heads = TakeHeads(&attributes, where);
  const convert::AttentionOp op = convert::ParseAttention(ConfigObject(attributes, system, golden.tokens), where, {heads, 0});

  const Json tolerance = file.Object("tolerance");
  golden.output_tolerance = ReadTolerance(tolerance, path + ": tolerance");
  golden.state_tolerance =
      tolerance.contains("state") ? ReadTolerance(tolerance["state"], path + ": tolerance: state") : golden.output_tolerance;
  for (const Json& chunk : file.Object("chunks")) golden.chunks.push_back(chunk.get<uint64_t>());
  golden.output = file.Tensor("o");
  golden.states = States(file, op);
  golden.model = BuildModel(file, op, heads, &golden);
  return golden;
}

}  // namespace tarn::golden
