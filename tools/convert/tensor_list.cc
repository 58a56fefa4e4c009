#include "tools/convert/tensor_list.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "tools/convert/attention/attention.h"
#include "tools/convert/build/graph_builder.h"
#include "tools/convert/build/model_graph.h"
#include "tools/convert/config/config.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

// Heads of a sample model, as unlike each other as a system lets them be.
struct SampleSizes {
  uint32_t kv_heads, value_head_dim, hidden_size;
};
constexpr SampleSizes kSizes[] = {{3, 10, 88}, {3, kSampleHeadDim, 88}, {kSampleHeads, 10, 88}, {kSampleHeads, kSampleHeadDim, 84}};

using Tensors = std::map<std::string, std::string>;  // name -> shape
using Sizes = std::vector<std::pair<std::string, uint64_t>>;

void SetSizes(const SampleSizes& sizes, Json* config) {
  (*config)["num_kv_heads"] = sizes.kv_heads;
  (*config)["head_dim"] = kSampleHeadDim;
  (*config)["value_head_dim"] = sizes.value_head_dim;
  (*config)["hidden_size"] = sizes.hidden_size;
}

void AddSizes(const Json& object, const std::vector<FieldRecord>& records, Sizes* sizes) {
  for (const FieldRecord& record : records) {
    if (record.kind != FieldKind::kInteger) continue;
    const Json value = object.value(record.key, record.fallback.value_or(0));
    if (value.is_number_unsigned() && value.get<uint64_t>() > 2) sizes->emplace_back(record.key, value.get<uint64_t>());
  }
}

// A size as a product of fields, or a number if it is none.
std::string SizeText(uint64_t size, const Sizes& sizes) {
  for (const auto& [name, value] : sizes) {
    if (size == value) return name;
  }
  for (const auto& [first, a] : sizes) {
    for (const auto& [second, b] : sizes) {
      if (size == a * b) return first + " * " + second;
    }
  }
  for (const auto& [name, value] : sizes) {
    if (size == value + 1) return name + " + 1";
  }
  for (const auto& [first, a] : sizes) {
    for (const auto& [second, b] : sizes) {
      if (size == 2 * a * b) return "2 * " + first + " * " + second;
    }
  }
  for (const auto& [first, a] : sizes) {
    for (const auto& [second, b] : sizes) {
      for (const auto& [third, c] : sizes) {
        if (size % (a * b) == 0 && size / (a * b) == c) return first + " * " + second + " * " + third;
      }
    }
  }
  return std::to_string(size);
}

// The name of a tensor with {i} for the number of its layer.
std::string InAnyLayer(std::string name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t begin = name.find(kLayers);
  if (begin == std::string::npos) return name;
  const size_t number = begin + kLayers.size(), end = name.find('.', number);
  const bool digits = end != std::string::npos && end > number && name.find_first_not_of("0123456789", number) == end;
  return digits ? name.replace(number, end - number, "{i}") : name;
}

// All tensors of a config, or nothing if it is refused.
std::optional<Tensors> TensorsOf(const Json& config, const Sizes& sizes) {
  try {
    GraphBuilder builder(Precision::kF32);
    BuildModel(ParseConfig(config.dump(), "config.json"), &builder);
    Tensors tensors;
    for (const WeightSpec& spec : builder.weights()) {
      std::string shape;
      for (const uint32_t size : spec.shape) shape += (shape.empty() ? "[" : ", ") + SizeText(size, sizes);
      tensors.emplace(InAnyLayer(spec.name), shape + "]");
    }
    return tensors;
  } catch (const ConvertError&) {
    return std::nullopt;
  }
}

// A row for each tensor of any run, in the order of the runs.
std::vector<TensorRow> Rows(const std::vector<FieldRun>& runs, const std::vector<Tensors>& tensors) {
  std::vector<TensorRow> rows;
  std::set<std::pair<std::string, std::string>> seen;
  for (const Tensors& some : tensors) {
    for (const auto& tensor : some) {
      if (!seen.insert(tensor).second) continue;
      const auto has = [&](const FieldRun& run) {
        const Tensors& mine = tensors[static_cast<size_t>(&run - runs.data())];
        const auto found = mine.find(tensor.first);
        return found != mine.end() && found->second == tensor.second;
      };
      rows.push_back({tensor.first, tensor.second, Where(runs, has)});
    }
  }
  return rows;
}

constexpr uint32_t kSampleLayers = 7;  // of causal models, whose layers may share a tensor with a row for each

// A config of layers with that attention object in that form.
Json SampleConfig(AttentionForm form, const Json& attention) {
  Json config = {{"vocab_size", 1009},   {"num_heads", kSampleHeads}, {"intermediate_size", 97},
                 {"hidden_act", "relu"}, {"norm", "rmsnorm"},         {"norm_eps", 0},
                 {"tokenizer", "none"}};
  const Json plain = {{"system", "softmax"}, {"max_context", 8}};
  if (form == AttentionForm::kCross) {
    config.update({{"task", "seq2seq"},
                   {"encoder_layers", 1},
                   {"decoder_layers", 1},
                   {"encoder_attention", plain},
                   {"decoder_attention", plain},
                   {"cross_attention", attention}});
  } else {
    config.update({{"task", form == AttentionForm::kCausal ? "causal_lm" : "masked_lm"},
                   {"num_layers", form == AttentionForm::kCausal ? kSampleLayers : 1},
                   {"attention", attention}});
  }
  return config;
}

// What `run` adds to a model with plain attention, with "attn." for the prefix of the layer; what it lacks, too.
std::optional<Tensors> AddedTensors(AttentionForm form, const FieldRun& run) {
  for (const SampleSizes& shape : kSizes) {
    Json config = SampleConfig(form, run.object), plain = SampleConfig(form, {{"system", "softmax"}, {"max_context", 8}});
    SetSizes(shape, &config);
    SetSizes(shape, &plain);
    Sizes sizes = {{"hidden_size", shape.hidden_size}, {"head_dim", kSampleHeadDim}};
    if (shape.value_head_dim != kSampleHeadDim) sizes.emplace_back("value_head_dim", shape.value_head_dim);
    if (shape.kv_heads != kSampleHeads) sizes.emplace_back("num_kv_heads", shape.kv_heads);
    sizes.emplace_back("num_heads", kSampleHeads);
    AddSizes(run.object, run.records, &sizes);
    sizes.emplace_back("num_layers", kSampleLayers);
    const std::optional<Tensors> all = TensorsOf(config, sizes), common = TensorsOf(plain, sizes);
    if (!all || !common) continue;
    const std::string prefix = form == AttentionForm::kCross ? "model.decoder.layers.{i}.cross_attn." : "model.layers.{i}.attn.";
    const auto short_name = [&](const std::string& name) {
      return name.compare(0, prefix.size(), prefix) == 0 ? "attn." + name.substr(prefix.size()) : name;
    };
    Tensors added;
    for (const auto& [name, dimensions] : *all) {
      if (common->count(name) == 0) added.emplace(short_name(name), dimensions);
    }
    for (const auto& [name, dimensions] : *common) {
      if (all->count(name) == 0) added.emplace(short_name(name), "none");
    }
    return added;
  }
  return std::nullopt;
}

constexpr uint32_t kSampleSourceVocab = 1013;

}  // namespace

std::vector<TensorRow> TaskTensors(std::vector<FieldRun> runs) {
  std::vector<Tensors> tensors;
  for (FieldRun& run : runs) {
    Json config = run.object;
    SampleSizes shape = kSizes[0];
    // Without o_proj a row is as wide as all heads of v.
    if (!config.value("output_projection", true)) shape.hidden_size = kSampleHeads * shape.value_head_dim;
    SetSizes(shape, &config);
    const std::string task = config.value("task", "causal_lm");
    // What the parser of another task reads is unknown to this one.
    for (const char* key : {"encoder_layers", "decoder_layers", "encoder_attention", "decoder_attention", "cross_attention"}) {
      if (task != "seq2seq") config.erase(key);
    }
    for (const char* key : {"num_layers", "attention"}) {
      if (task == "seq2seq") config.erase(key);
    }
    Sizes sizes = {{"hidden_size", shape.hidden_size}, {"head_dim", kSampleHeadDim}, {"value_head_dim", 10}, {"num_kv_heads", 3}};
    if (task == "seq2seq" && !config.value("share_embeddings", false)) {
      config["source_vocab_size"] = kSampleSourceVocab;
      sizes.emplace_back("source_vocab_size", kSampleSourceVocab);
    }
    AddSizes(config, run.records, &sizes);
    const std::optional<Tensors> made = TensorsOf(config, sizes);
    run.accepted = run.accepted && made;  // some fields want other sizes
    tensors.push_back(made.value_or(Tensors()));
  }
  return Rows(runs, tensors);
}

std::vector<TensorRow> SystemTensors(const std::string& system) {
  std::vector<TensorRow> rows;
  for (const AttentionForm form : kAttentionForms) {
    if (!HasForm(system, form)) continue;
    std::vector<FieldRun> runs = ExploreAttention(system, SampleContext(form));
    std::vector<Tensors> tensors;
    for (FieldRun& run : runs) {
      const std::optional<Tensors> added = AddedTensors(form, run);
      run.accepted = run.accepted && added;
      tensors.push_back(added.value_or(Tensors()));
    }
    for (TensorRow& row : Rows(runs, tensors)) {
      const auto same = [&](const TensorRow& other) { return other.name == row.name && other.shape == row.shape; };
      if (std::any_of(rows.begin(), rows.end(), same)) continue;
      // The last of the forms: no other has this one.
      if (form == AttentionForm::kCross) row.where += (row.where.empty() ? "" : ", ") + std::string("cross attention of seq2seq");
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string TensorText(const std::vector<TensorRow>& rows) {
  std::string text;
  for (const TensorRow& row : rows) {
    text += "  " + row.name + "  " + row.shape + "  " + (row.where.empty() ? "always" : row.where) + "\n";
  }
  return text.empty() ? "" : "  tensor  shape  where\n" + text;
}

// Of every system, found once: a checkpoint may have several unknown tensors.
static const std::map<std::string, std::vector<TensorRow>>& AllSystemTensors() {
  static const auto* const all = [] {
    auto* found = new std::map<std::string, std::vector<TensorRow>>;
    for (const std::string& system : SystemNames()) (*found)[system] = SystemTensors(system);
    return found;
  }();
  return *all;
}

std::string UnknownTensorHint(const std::string& name, const std::string& config_text) {
  const Json config = Json::parse(config_text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return "";
  const std::string pattern = InAnyLayer(name);
  for (const TensorRow& row : TaskTensors(ExploreConfig(config.value("task", "causal_lm")))) {
    if (row.name == pattern && !row.where.empty()) return "; it is read where " + row.where;
  }
  // Stacks differ in their prefix.
  size_t at = name.find(".cross_attn.");
  at = at != std::string::npos ? at + 7 : name.find(".attn.") + 1;
  if (at == 0) return "";
  const std::string key = name.substr(at);
  std::vector<std::string> systems;
  for (const std::string& system : SystemNames()) {
    for (const TensorRow& row : AllSystemTensors().at(system)) {
      if (row.name != key || row.shape == "none") continue;
      // The systems of this config come first: a choice of theirs may be missing.
      if (config_text.find("\"" + system + "\"") != std::string::npos) {
        return "; attention \"" + system + "\" has it" + (row.where.empty() ? "" : " where " + row.where);
      }
      systems.push_back(system);
      break;
    }
  }
  return systems.empty() ? "" : "; a tensor of attention " + QuotedNames(systems);
}

}  // namespace tarn::convert
