#include "tools/convert/summary.h"

#include <algorithm>
#include <cstdio>

#include "tools/convert/quantize.h"

namespace tarn::convert {
namespace {

// "a", "a and 3 more"
std::string NamesText(const std::vector<std::string>& names) {
  return names.size() == 1 ? names[0] : names[0] + " and " + std::to_string(names.size() - 1) + " more";
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

std::string SystemsText(const std::vector<AttentionOp>& layers) {
  std::vector<std::string> names;
  for (const AttentionOp& op : layers) {
    if (std::find(names.begin(), names.end(), op.system) == names.end()) names.push_back(op.system);
  }
  std::string text;
  for (const std::string& name : names) {
    const auto count = std::count_if(layers.begin(), layers.end(), [&](const AttentionOp& op) { return op.system == name; });
    text += (text.empty() ? "" : ", ") + name + " x " + std::to_string(count);
  }
  return text;
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
  for (const Matrix& matrix : matrices) {
    if (matrix.narrow) names.push_back(matrix.name);
  }
  if (names.empty()) return "";
  return "int8 instead of int4 for " + NamesText(names) + ": the length of their rows is no multiple of " +
         std::to_string(kInt4Block);
}

}  // namespace tarn::convert
