#include "tools/convert/graph/precision.h"

#include <fnmatch.h>

#include <algorithm>

#include "tools/convert/json/error.h"

namespace tarn::convert {

const std::vector<std::string>& PrecisionNames() {
  static const std::vector<std::string> names = {"f32", "f16", "int8", "int4", "int3", "int2"};
  return names;
}

Precision ParsePrecision(const std::string& name) {
  const auto& names = PrecisionNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) Fail("\"", name, "\" is no precision: f32, f16, int8, int4, int3 and int2 are");
  return static_cast<Precision>(found - names.begin());
}

const std::string& NameOf(Precision precision) { return PrecisionNames()[static_cast<size_t>(precision)]; }

void PrecisionRules::Keep(const std::string& rule) {
  const size_t equals = rule.rfind('=');
  if (equals == std::string::npos || equals == 0) Fail("\"", rule, "\" is not PATTERN=TYPE");
  rules_.push_back({rule, rule.substr(0, equals), ParsePrecision(rule.substr(equals + 1)), true, false});
}

void PrecisionRules::Prefer(const std::string& pattern, Precision precision) {
  rules_.push_back({pattern, pattern, precision, false, false});
}

Precision PrecisionRules::Choose(const std::vector<std::string>& names, bool* explicitly) {
  Precision precision = rest_;
  *explicitly = false;
  for (Rule& rule : rules_) {
    const auto matches = [&rule](const std::string& name) { return fnmatch(rule.pattern.c_str(), name.c_str(), 0) == 0; };
    if (!std::any_of(names.begin(), names.end(), matches)) continue;
    precision = rule.precision;
    rule.used = true;
    *explicitly = rule.keeps;
  }
  return precision;
}

void PrecisionRules::CheckUsed(const std::vector<std::string>& matrices) const {
  constexpr size_t kShown = 4;
  for (const Rule& rule : rules_) {
    if (rule.used) continue;
    std::string names;
    for (size_t i = 0; i < std::min(matrices.size(), kShown); ++i) names += (i == 0 ? "" : ", ") + matrices[i];
    if (matrices.size() > kShown) names += " and " + std::to_string(matrices.size() - kShown) + " more";
    throw tools::UsageFailure("--keep " + rule.text + ": matches none of the matrices, which are " + names);
  }
}

}  // namespace tarn::convert
