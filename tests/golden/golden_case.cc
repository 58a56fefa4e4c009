#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/golden/golden_composite.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_model.h"
#include "tools/convert/attention/attention.h"
#include "tools/convert/build/layers.h"
#include "tools/convert/json/error.h"

namespace tarn::golden {
namespace {

using convert::AttentionForm;
using convert::AttentionOp;
using convert::Fail;
using convert::Json;
using format::Slice;

// Where golden files and config.json have different names for a system.
constexpr struct {
  const char* golden;
  const char* config;
} kSystemNames[] = {{"rfa_gate", "rfa"}, {"delta_rule_attn_norm", "delta_rule"}};

// The states of an op, and what golden files call them.
constexpr struct {
  const char* state;
  const char* golden;
} kStateNames[] = {{"S", "state_S"},
                   {"z", "state_z"},
                   {"m", "state_m"},
                   {"K", "state_K"},
                   {"V", "state_V"},
                   {"mass", "state_lse"},
                   {"mass", "state_z"},
                   {"mass", "state_count"},
                   {"bias", "state_count"},
                   {"value_mass", "state_value_lse"},
                   {"value_mass", "state_value_z"},
                   {"h", "state_h"},
                   {"conv.rows", "state_rows"}};

// What only who writes needs: no state of a source.
constexpr const char* kWritersStates[] = {"state_lse", "state_value_lse", "state_m"};

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

// What config.json would say: without what the layer knows or what follows, with what a golden file leaves to the length of its
// inputs.
Json ConfigObject(const File& file, Json attributes, const std::string& system, uint64_t tokens) {
  attributes.erase("causal");
  attributes.erase("num_top");
  attributes["system"] = system;
  if (system == "softmax" || system == "clustered" || system == "improved_clustered" || system == "probsparse") {
    attributes["max_context"] = tokens;
  }
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

// A file with one attention op.
class OpCase {
 public:
  explicit OpCase(const File& file) : file_(file), system_(ConfigName(file.Text("system"))), where_(file.path() + ": attributes") {
    Json attributes = file.Object("attributes");
    heads_ = TakeHeads(&attributes, where_);
    key_heads_ = attributes.value("num_key_heads", 0u);
    attributes.erase("num_key_heads");
    layer_ = attributes.value("layer", 0u);
    layers_ = attributes.value("num_layers", 1u);
    for (const char* key : {"layer", "num_layers"}) attributes.erase(key);
    tokens_ = file.Rows(file.Has("x") ? "x" : "v");
    const uint64_t queries = file.Has("q") ? file.Rows("q") : tokens_;
    attributes_ = ConfigObject(file, std::move(attributes), system_, std::max(queries, tokens_));
  }

  // Positions of target and source have no distance.
  bool has_cross_form() const {
    const bool distances = attributes_.contains("distance_bias") || attributes_.contains("distance_slopes");
    return convert::HasForm(system_, AttentionForm::kCross) && !distances;
  }

  GoldenModel BuildCausal() const {
    const AttentionOp op = Parse(AttentionForm::kCausal);
    ModelBuilder model(file_);
    model.Begin(Stage::kDecode, tokens_);
    if (op.composed) {
      AddComposed(op, &model);
    } else if (op.reads_qk) {
      AddAttention(op, file_.Has("x") ? ProjectedInputs(&model) : std::vector{model.Input("q"), model.Input("k"), model.Input("v")},
                   &model);
    } else {
      AddAttention(op, {model.Input("v")}, &model);
    }
    AddStates(op, &model);
    return model.Finish();
  }

  GoldenModel BuildNoncausal() const {
    ModelBuilder model(file_);
    model.Begin(Stage::kEncode, tokens_);
    AddAttention(Parse(AttentionForm::kNoncausal), {model.Input("q"), model.Input("k"), model.Input("v")}, &model);
    return model.Finish();
  }

  // "encode" has to have an output: it hands the keys on.
  GoldenModel BuildCross() const {
    const AttentionOp op = Parse(AttentionForm::kCross);
    ModelBuilder model(file_);
    model.Begin(Stage::kEncode, tokens_);
    std::vector<Slice> inputs = {model.Input("k"), model.Input("v")};
    AddLogits(op, &inputs, &model);
    model.Output(inputs[0], "k");
    std::vector<uint32_t> states = model.graph().AddAttentionWrite("write", "", op, inputs);
    model.Begin(Stage::kDecode, file_.Rows("q"));
    const Slice q = model.Input("q");
    model.Output(model.graph().AddAttentionRead("read", "", op, heads_, q, std::move(states)), "o");
    AddStates(op, &model);
    return model.Finish();
  }

 private:
  AttentionOp Parse(AttentionForm form) const {
    // The width of the model is in `scale` already; a golden file knows neither biases nor positions.
    convert::AttentionContext context{heads_, 0, heads_.heads() * heads_.head_dim(), false, false, form};
    context.key_heads = key_heads_;
    context.layer = layer_;
    context.layers = layers_;
    AttentionOp op = convert::ParseAttention(attributes_, where_, context);
    for (convert::AttentionTensor& tensor : op.tensors) {
      tensor.shared = tensor.shared_parts = false;  // there is no model around the op
      for (size_t i = 1; i < tensor.parts.size(); ++i) {
        if (tensor.parts[i].name == "sigma") tensor.parts[i].name = kFoldedSigma;
      }
    }
    if (file_.Has("centroid_index")) {  // no checkpoint has them
      const std::vector<uint32_t> shape = {heads_.heads(), attributes_.at("num_clusters").get<uint32_t>()};
      op.tensors.push_back(
          {"centroid_index", shape, {{"centroid_index", shape, convert::Init::kZero}}, nullptr, format::DType::I32});
    }
    return op;
  }

  static void AddLogits(const AttentionOp& op, std::vector<Slice>* inputs, ModelBuilder* model) {
    const size_t v = inputs->size() - 1;  // k stands before it
    if (op.reads_global)
      inputs->insert(inputs->end(), {model->Input("q_global"), model->Input("k_global"), model->Input("v_global")});
    for (const convert::LogitInput& logit : op.logits) {
      if (logit.rows == convert::LogitRows::kLayer) {
        inputs->push_back(model->Input(logit.name));
      } else {
        const Slice rows = (*inputs)[logit.rows == convert::LogitRows::kKeys ? v - 1 : v];
        inputs->push_back(convert::AddHeadLogits(&model->graph(), logit.name, logit.projection, logit, rows));
      }
    }
    if (op.reads_removal) inputs->push_back(model->Input("removal_key"));
    if (op.drawn) inputs->push_back(model->Input(op.drawn->name));
  }

  void AddAttention(const AttentionOp& op, std::vector<Slice> inputs, ModelBuilder* model) const {
    AddLogits(op, &inputs, model);
    model->Output(model->graph().AddAttention("attn", "", op, heads_, std::move(inputs)), "o");
  }

  // Several ops, whose states are those of the graph.
  static void AddComposed(const AttentionOp& op, ModelBuilder* model) {
    Slice q, k;
    if (op.reads_qk) {
      q = model->Input("q");
      k = model->Input("k");
    }
    model->Output(op.composed->heads(&model->graph(), "", q, k, model->Input("v")), "o");
  }

  // q, k and v from hidden rows.
  std::vector<Slice> ProjectedInputs(ModelBuilder* model) const {
    const Slice x = model->Input("x");
    std::vector<Slice> slices;
    for (const std::string name : {"q", "k", "v"}) {
      const auto width = static_cast<uint32_t>(file_.Rows(name + "_weight"));
      slices.push_back(model->graph().AddDense(name, name, {{name, width, false}}, x));
    }
    return slices;
  }

  // The logits' bias of a slot instead of the number of its members.
  GoldenTensor BiasOf(GoldenTensor count) const {
    const bool weighs = attributes_.value("mass_bias", false);
    for (float& value : count.values) value = weighs || value == 0 ? std::log(value) : 0;
    return count;
  }

  GoldenTensor Want(const std::string& name, const AttentionOp& op, const convert::GraphState& state) const {
    const GoldenTensor tensor = file_.Tensor(name);
    if (state.name == "bias") return BiasOf(tensor);
    // Slots keep their keys with the slots innermost.
    const bool slots = op.type == format::OpAttributes::SlotMemory || op.type == format::OpAttributes::NoncausalSlots;
    return slots && state.name == "K" ? Transposed(tensor) : tensor;
  }

  void AddStates(const AttentionOp& op, ModelBuilder* model) const {
    const std::vector<convert::GraphState>& states = op.composed ? model->graph().graph().states : op.states;
    for (const std::string& name : file_.StateNames()) {
      if (op.state_kind == convert::StateKind::kSource &&
          std::find(std::begin(kWritersStates), std::end(kWritersStates), name) != std::end(kWritersStates))
        continue;
      size_t found = 0;
      for (const auto& names : kStateNames) {
        if (name != names.golden) continue;
        for (uint32_t i = 0; i < states.size(); ++i) {
          if (states[i].name != names.state) continue;
          GoldenTensor want = Want(name, op, states[i]);
          if (!std::equal(want.shape.begin(), want.shape.end(), states[i].shape.begin(), states[i].shape.end())) {
            Fail(file_.path(), ": ", name, " does not fit the op's state ", convert::ShapeText(states[i].shape));
          }
          model->State(i, std::move(want));
          ++found;
        }
      }
      if (found != 1) Fail(file_.path(), ": ", name, " is ", found, " states of the op");
    }
  }

  const File& file_;
  const std::string system_, where_;
  Json attributes_;  // as config.json has them
  format::Heads heads_;
  uint32_t key_heads_, layer_, layers_;
  uint64_t tokens_;  // keys
};

Tolerance ReadTolerance(const Json& object, const std::string& where) {
  convert::Fields fields(object, where);
  return {fields.Number("abs"), fields.Number("rel")};
}

std::vector<GoldenModel> BuildModels(const File& file) {
  std::vector<GoldenModel> models;
  ModelBuilder composite(file);
  if (AddComposite(file, &composite)) {
    models.push_back(composite.Finish());
    return models;
  }
  const OpCase op(file);
  if (file.Text("family") != "noncausal") {
    models.push_back(op.BuildCausal());
    return models;
  }
  models.push_back(op.BuildNoncausal());
  if (op.has_cross_form()) models.push_back(op.BuildCross());
  return models;
}

}  // namespace

GoldenCase LoadGoldenCase(const std::string& path) {
  const File file(path);
  GoldenCase golden;
  golden.name = file.Text("case");
  const Json tolerance = file.Object("tolerance");
  golden.output_tolerance = ReadTolerance(tolerance, path + ": tolerance");
  golden.state_tolerance =
      tolerance.contains("state") ? ReadTolerance(tolerance["state"], path + ": tolerance: state") : golden.output_tolerance;
  for (const Json& chunk : file.Object("chunks")) golden.chunks.push_back(chunk.get<uint64_t>());
  golden.models = BuildModels(file);
  return golden;
}

}  // namespace tarn::golden
