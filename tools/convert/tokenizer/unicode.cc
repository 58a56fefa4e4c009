#include "tools/convert/tokenizer/unicode.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tools/convert/tokenizer/unicode_data.h"

namespace tarn::convert {
namespace {

using Accepts = std::function<bool(const PropertyRow&)>;

CodeSet SetOf(const Accepts& accepts) {
  CodeSet set;
  std::vector<CodeSet::Range> ranges;
  uint32_t begin = 0;
  for (size_t i = 0; i < kPropertyRunCount; ++i) {
    const uint32_t end = begin + kPropertyRuns[i] / 1024;
    if (accepts(kPropertyRows[kPropertyRuns[i] % 1024])) {
      if (!ranges.empty() && ranges.back().second + 1 == begin) {
        ranges.back().second = end - 1;
      } else {
        ranges.emplace_back(begin, end - 1);
      }
    }
    begin = end;
  }
  return CodeSet(std::move(ranges));
}

std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

// What a letter stands for that begins the names of several categories: "L", "Letter".
const std::map<std::string, char>& Groups() {
  static const std::map<std::string, char> groups = {
      {"letter", 'L'}, {"mark", 'M'}, {"number", 'N'}, {"punctuation", 'P'}, {"symbol", 'S'}, {"separator", 'Z'}, {"other", 'C'},
      {"l", 'L'},      {"m", 'M'},    {"n", 'N'},      {"p", 'P'},           {"s", 'S'},      {"z", 'Z'},         {"c", 'C'}};
  return groups;
}

CodeSet CategoriesSet(const std::function<bool(const CategoryName&)>& accepts, UnicodeVersion version) {
  return SetOf([&](const PropertyRow& row) { return accepts(kCategoryNames[row.category[static_cast<size_t>(version)]]); });
}

CodeSet GroupSet(char group, UnicodeVersion version) {
  return CategoriesSet([&](const CategoryName& name) { return name.brief[0] == group; }, version);
}

CodeSet CategorySet(const std::string& brief, UnicodeVersion version) {
  return CategoriesSet([&](const CategoryName& name) { return name.brief == brief; }, version);
}

CodeSet Alphabetic() {
  return SetOf([](const PropertyRow& row) { return row.alphabetic != 0; });
}

CodeSet Space() {
  // White_Space: the same in all of these versions.
  return GroupSet('Z', UnicodeVersion::k16).Union(CodeSet(0x09, 0x0D)).Union(CodeSet(0x85, 0x85));
}

std::optional<CodeSet> NamedSet(const std::string& plain) {
  if (plain == "any") return CodeSet(0, kMaxCodePoint);
  if (plain == "alphabetic" || plain == "alpha") return Alphabetic();
  if (plain == "digit") return CategorySet("Nd", UnicodeVersion::k16);
  if (plain == "alnum") return Alphabetic().Union(CategorySet("Nd", UnicodeVersion::k16));
  if (plain == "space" || plain == "whitespace") return Space();
  for (size_t i = 0; i < kScriptCount; ++i) {
    if (Plain(kScriptNames[i]) == plain) return SetOf([&](const PropertyRow& row) { return row.script == i + 1; });
  }
  return std::nullopt;
}

std::map<uint32_t, uint32_t> MakeFolds() {
  std::map<uint32_t, uint32_t> folds;
  for (size_t i = 0; i < kFoldCount; ++i) {
    const CaseRun& run = kFolds[i];
    for (uint32_t k = 0; k < run.count; ++k) {
      const uint32_t code = run.first + k * run.stride;
      folds[code] = static_cast<uint32_t>(static_cast<int32_t>(code) + run.delta);
    }
  }
  return folds;
}

const std::map<uint32_t, uint32_t>& Folds() {
  static const std::map<uint32_t, uint32_t> folds = MakeFolds();
  return folds;
}

}  // namespace

CodeSet::CodeSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}

bool CodeSet::Contains(uint32_t code) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), Range(code, UINT32_MAX));
  return after != ranges_.begin() && std::prev(after)->second >= code;
}

CodeSet CodeSet::Union(const CodeSet& other) const {
  std::vector<Range> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  std::sort(all.begin(), all.end());
  CodeSet result;
  for (const Range& range : all) {
    if (!result.ranges_.empty() && range.first <= result.ranges_.back().second + 1) {
      result.ranges_.back().second = std::max(result.ranges_.back().second, range.second);
    } else {
      result.ranges_.push_back(range);
    }
  }
  return result;
}

CodeSet CodeSet::Complement() const {
  CodeSet result;
  uint32_t begin = 0;
  for (const Range& range : ranges_) {
    if (range.first > begin) result.ranges_.emplace_back(begin, range.first - 1);
    begin = range.second + 1;
  }
  if (begin <= kMaxCodePoint) result.ranges_.emplace_back(begin, kMaxCodePoint);
  return result;
}

CodeSet CodeSet::Intersection(const CodeSet& other) const { return Complement().Union(other.Complement()).Complement(); }

std::vector<CodeSet> ScriptSets() {
  std::map<uint32_t, std::vector<CodeSet::Range>> ranges;
  uint32_t first = 0;
  for (size_t i = 0; i < kScriptRunCount; ++i) {
    const uint32_t end = first + kScriptRuns[i] / 256, set = kScriptRuns[i] % 256;
    if (set != 0) ranges[set].push_back({first, end - 1});
    first = end;
  }
  std::vector<CodeSet> sets;
  for (auto& [set, of] : ranges) sets.emplace_back(std::move(of));
  return sets;
}

std::optional<CodeSet> PropertySet(std::string_view name, UnicodeVersion version) {
  const std::string plain = Plain(name);
  const auto group = Groups().find(plain);
  if (group != Groups().end()) return GroupSet(group->second, version);
  for (const CategoryName& category : kCategoryNames) {
    if (Plain(category.brief) == plain || Plain(category.full) == plain) return CategorySet(category.brief, version);
  }
  return NamedSet(plain);
}

CodeSet WordSet() {
  const CodeSet marks = GroupSet('M', UnicodeVersion::k16);
  return Alphabetic().Union(marks).Union(CategorySet("Nd", UnicodeVersion::k16)).Union(CategorySet("Pc", UnicodeVersion::k16));
}

uint32_t FoldCase(uint32_t code) {
  const auto found = Folds().find(code);
  return found == Folds().end() ? code : found->second;
}

CodeSet CaseClosure(const CodeSet& set) {
  std::vector<CodeSet::Range> folded;  // what members fold to, themselves included
  for (const auto& [code, fold] : Folds()) {
    if (set.Contains(code)) folded.emplace_back(fold, fold);
  }
  std::sort(folded.begin(), folded.end());
  folded.erase(std::unique(folded.begin(), folded.end()), folded.end());
  CodeSet closure = set.Union(CodeSet(folded));
  std::vector<CodeSet::Range> others;
  for (const auto& [code, fold] : Folds()) {
    if (closure.Contains(fold)) others.emplace_back(code, code);
  }
  return closure.Union(CodeSet(others));
}

const std::vector<LongFold>& LongFolds() {
  static const std::vector<LongFold> folds = [] {
    std::vector<LongFold> result;
    for (size_t i = 0; i < kLongFoldCount; ++i) {
      LongFold fold{kLongFolds[i].code, {}};
      for (const uint32_t code : kLongFolds[i].folded) {
        if (code != 0) fold.folded.push_back(code);
      }
      result.push_back(fold);
    }
    return result;
  }();
  return folds;
}

}  // namespace tarn::convert
