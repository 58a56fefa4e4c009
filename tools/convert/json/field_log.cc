#include "tools/convert/json/field_log.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

FieldRun Run(const Json& object, const ParseWithLog& parse, std::vector<std::pair<std::string, Json>> set, bool descending) {
  FieldLog log;
  log.descending = descending;
  log.object = object;
  for (const auto& [key, value] : set) log.object[key] = value;
  FieldRun run;
  run.set = std::move(set);
  try {
    const Json given = log.object;
    parse(given, &log);
    run.accepted = true;
  } catch (const ConvertError&) {
  }
  run.records = std::move(log.records);
  run.object = std::move(log.object);
  return run;
}

// "field" is one of some values of a choice.
std::string IsText(const FieldRecord& choice, const std::vector<Json>& values) {
  std::string text = "\"" + choice.key + "\" is ";
  const auto other = std::find_if(choice.choices.begin(), choice.choices.end(), [&](const Json& value) {
    return std::find(values.begin(), values.end(), value) == values.end();
  });
  if (values.size() > 2 && values.size() + 1 == choice.choices.size()) return text + "not " + other->dump();
  for (const Json& value : values) text += (&value == values.data() ? "" : " or ") + value.dump();
  return text;
}

}  // namespace

bool FieldRecord::operator==(const FieldRecord& other) const {
  return std::tie(key, kind, fallback, min, max, text, choices) ==
         std::tie(other.key, other.kind, other.fallback, other.min, other.max, other.text, other.choices);
}

const FieldRecord* FieldRun::Find(const std::string& key) const {
  const auto found = std::find_if(records.begin(), records.end(), [&](const FieldRecord& record) { return record.key == key; });
  return found == records.end() ? nullptr : &*found;
}

std::vector<FieldRun> ExploreFields(const Json& object, const ParseWithLog& parse, const std::string& fixed) {
  // Sizes that must not be above an earlier one, or not below it.
  bool descending = false;
  std::vector<FieldRun> runs = {Run(object, parse, {}, descending)};
  if (!runs[0].accepted) {
    FieldRun other = Run(object, parse, {}, true);
    descending = other.accepted;
    if (descending) runs[0] = std::move(other);
  }
  const auto explore = [&](const FieldRun& base, const std::set<std::string>& explored) {
    std::set<std::string> fresh;
    for (const FieldRecord& record : base.records) {
      if (record.choices.empty() || explored.count(record.key) != 0 || !fresh.insert(record.key).second) continue;
      for (const Json& choice : record.choices) {
        if (base.object.value(record.key, record.fallback.value_or(record.choices[0])) == choice) continue;
        auto set = base.set;
        set.emplace_back(record.key, choice);
        runs.push_back(Run(object, parse, std::move(set), descending));
      }
    }
    return fresh;
  };
  // Fields of the first run one at a time; fields that a value of theirs adds, for each such value.
  std::set<std::string> explored = explore(FieldRun(runs[0]), {fixed});
  explored.insert(fixed);
  for (size_t i = 1, count = runs.size(); i < count; ++i) explore(FieldRun(runs[i]), explored);
  return runs;
}

bool IsRead(const std::vector<FieldRun>& runs, const std::string& key) {
  return std::any_of(runs.begin(), runs.end(), [&](const FieldRun& run) { return run.Find(key) != nullptr; });
}

std::vector<std::string> FieldNames(const std::vector<FieldRun>& runs) {
  std::vector<std::string> names;
  for (const FieldRun& run : runs) {
    for (const FieldRecord& record : run.records) names.push_back(record.key);
  }
  return names;
}

std::string WhereRead(const std::vector<FieldRun>& runs, const std::string& key) {
  return Where(runs, [&](const FieldRun& run) { return run.Find(key) != nullptr; });
}

std::string Where(const std::vector<FieldRun>& runs, const RunHas& has) {
  for (const FieldRecord& choice : runs[0].records) {
    if (choice.choices.empty()) continue;
    const Json first = runs[0].object.value(choice.key, choice.fallback.value_or(choice.choices[0]));
    std::vector<Json> values;
    bool everywhere = true;
    for (const Json& value : choice.choices) {
      const auto run = std::find_if(runs.begin(), runs.end(), [&](const FieldRun& candidate) {
        return value == first ? candidate.set.empty() : candidate.set == decltype(candidate.set){{choice.key, value}};
      });
      if (run == runs.end()) continue;
      if (has(*run)) {
        values.push_back(value);
      } else if (run->accepted) {
        everywhere = false;
      }
    }
    if (!values.empty() && !everywhere) return IsText(choice, values);
  }
  // Where no single value decides.
  const auto first = std::find_if(runs.begin(), runs.end(), has);
  if (first == runs.end() || first->set.empty()) return "";
  const auto& [outer, value] = first->set[0];
  if (first->set.size() == 1) return IsText(*runs[0].Find(outer), {value});
  std::vector<Json> values;  // of the outer field, with that of the inner one
  for (const FieldRun& run : runs) {
    if (run.set.size() == 2 && run.set[0].first == outer && run.set[1] == first->set[1] && has(run)) {
      values.push_back(run.set[0].second);
    }
  }
  return IsText(*runs[0].Find(outer), values) + ", and \"" + first->set[1].first + "\" is " + first->set[1].second.dump();
}

}  // namespace tarn::convert
