#include "tools/convert/summary.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/convert/graph/quantize.h"

namespace tarn::convert {
namespace {

// "a", "a and 3 more"
std::string NamesText(const std::vector<std::string>& names) {
  return names.size() == 1 ? names[0] : names[0] + " and " + std::to_string(names.size() - 1) + " more";
}

using LayerText = std::string (*)(const AttentionOp& op);

// "rfa x 3, softmax x 1": what the layers of a stack are, and how many of them. Layers without a text do not count.
std::string CountText(const std::vector<AttentionOp>& layers, const LayerText text_of) {
  std::vector<std::string> names;
  for (const AttentionOp& op : layers) {
    const std::string name = text_of(op);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) {
    const auto count = std::count_if(layers.begin(), layers.end(), [&](const AttentionOp& op) { return text_of(op) == name; });
    text += (text.empty() ? "" : ", ") + name + " x " + std::to_string(count);
  }
  return text;
}

// The texts of the stacks, with their names in models that have several.
std::string StacksText(const ModelConfig& config, const LayerText text_of) {
  std::string text;
  for (const auto& [name, layers] : {std::pair{"encoder: ", &config.encoder},
                                     {"decoder: ", &config.decoder},
                                     {"second: ", &config.second},
                                     {"cross: ", &config.cross}}) {
    const std::string counts = CountText(*layers, text_of);
    if (!counts.empty()) text += (text.empty() ? "" : "; ") + std::string(config.cross.empty() ? "" : name) + counts;
  }
  return text;
}

std::string SystemOf(const AttentionOp& op) { return op.system; }

// Of the states whose type is a choice: the first ones.
std::string StateTypeOf(const AttentionOp& op) {
  if (op.states.empty()) return "";
  switch (op.states[0].dtype) {
    case format::DType::F16:
      return "f16";
    case format::DType::I8:
      return "int8";
    default:
      return "f32";
  }
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  char text[32];
  if (bytes < 1'000'000) {
    std::snprintf(text, sizeof(text), "%.1f kB", static_cast<double>(bytes) * 1e-3);
  } else {
    std::snprintf(text, sizeof(text), "%.1f MB", static_cast<double>(bytes) * 1e-6);
  }
  return text;
}

std::string SystemsText(const ModelConfig& config) { return StacksText(config, SystemOf); }

std::string StatesText(const ModelConfig& config) {
  if (config.decoder.empty()) return "none";
  // Without sources, all states have one type.
  return config.cross.empty() ? StateTypeOf(config.decoder[0]) : StacksText(config, StateTypeOf);
}

std::string PrecisionText(const std::vector<Matrix>& matrices, const std::string& quant) {
  std::string others;
  for (const std::string& precision : PrecisionNames()) {
    std::vector<std::string> names;
    for (const Matrix& matrix : matrices) {
      if (matrix.precision == ParsePrecision(precision)) names.push_back(matrix.name);
    }
    if (precision != quant && !names.empty()) others += (others.empty() ? "" : "; ") + precision + ": " + NamesText(names);
  }
  return others.empty() ? quant : quant + " (" + others + ")";
}

std::string NarrowText(const std::vector<Matrix>& matrices) {
  std::vector<std::string> names;
  Precision wanted = Precision::kInt4;
  for (const Matrix& matrix : matrices) {
    if (matrix.precision == matrix.wanted) continue;
    names.push_back(matrix.name);
    wanted = matrix.wanted;
  }
  if (names.empty()) return "";
  return "int8 instead of " + NameOf(wanted) + " for " + NamesText(names) + ": the length of their rows is no multiple of " +
         std::to_string(kScaleBlock);
}

}  // namespace tarn::convert
