#include "tools/convert/tokenizer/normal_forms.h"

#include <algorithm>

#include "tools/convert/tokenizer/unicode.h"
#include "tools/convert/tokenizer/unicode_data.h"

namespace tarn::convert {
namespace {

// One step of decomposition.
struct Decomposition {
  std::vector<uint32_t> parts;
  bool is_compatibility;
};

const std::map<uint32_t, Decomposition>& Decompositions() {
  static const std::map<uint32_t, Decomposition> all = [] {
    std::map<uint32_t, Decomposition> result;
    for (size_t i = 0; i < kDecompositionWords;) {
      const uint32_t* const row = kDecompositions + i;
      const size_t count = row[1] / 2;
      result[row[0]] = {{row + 2, row + 2 + count}, row[1] % 2 != 0};
      i += 2 + count;
    }
    return result;
  }();
  return all;
}

void Expand(uint32_t code, bool with_compatibility, std::vector<uint32_t>* parts) {
  const auto found = Decompositions().find(code);
  if (found == Decompositions().end() || (found->second.is_compatibility && !with_compatibility)) {
    parts->push_back(code);
    return;
  }
  for (const uint32_t part : found->second.parts) Expand(part, with_compatibility, parts);
}

CodeMapping Expanded(bool with_compatibility) {
  CodeMapping mapping;
  for (const auto& [code, decomposition] : Decompositions()) {
    std::vector<uint32_t> parts;
    Expand(code, with_compatibility, &parts);
    if (parts != std::vector<uint32_t>{code}) mapping[code] = std::move(parts);
  }
  return mapping;
}

}  // namespace

CodeMapping CanonicalDecompositions() { return Expanded(false); }

CodeMapping CompatibilityDecompositions() {
  const CodeMapping canonical = CanonicalDecompositions();
  CodeMapping mapping = Expanded(true);
  for (const auto& [code, parts] : canonical) {
    if (mapping[code] == parts) mapping.erase(code);
  }
  return mapping;
}

std::vector<std::array<uint32_t, 3>> Compositions() {
  std::vector<std::array<uint32_t, 3>> compositions;
  for (size_t i = 0; i < kComposedCount; ++i) {
    const std::vector<uint32_t>& parts = Decompositions().at(kComposed[i]).parts;
    compositions.push_back({parts[0], parts[1], kComposed[i]});
  }
  std::sort(compositions.begin(), compositions.end());
  return compositions;
}

std::vector<uint8_t> CombiningClasses() {
  std::vector<uint8_t> classes(kMaxCodePoint + 1);
  for (size_t i = 0; i < kCombiningRunCount; ++i) {
    const uint32_t end = i + 1 < kCombiningRunCount ? kCombiningRuns[i + 1].first : kMaxCodePoint + 1;
    std::fill(classes.begin() + kCombiningRuns[i].first, classes.begin() + end, kCombiningRuns[i].of);
  }
  return classes;
}

CodeMapping LowercaseMappings() {
  CodeMapping mapping;
  for (size_t i = 0; i < kLowercaseCount; ++i) {
    const CaseRun& run = kLowercase[i];
    for (uint32_t k = 0; k < run.count; ++k) {
      const uint32_t code = run.first + k * run.stride;
      mapping[code] = {static_cast<uint32_t>(static_cast<int32_t>(code) + run.delta)};
    }
  }
  mapping[0x130] = {'i', 0x307};  // SpecialCasing.txt
  return mapping;
}

}  // namespace tarn::convert
