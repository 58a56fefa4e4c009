#include "tools/convert/json/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "tools/common/suggestion.h"

namespace tarn::convert {
namespace {

constexpr size_t kShownBytes = 60;
// Sample values: unlike each other, so that it can be seen which of them a shape is made of.
constexpr uint64_t kSamples[] = {17, 19, 23, 29, 31, 37};
constexpr size_t kSampleCount = std::size(kSamples);

uint64_t SampleSize(const FieldLog& log, uint64_t min, uint64_t max) {
  const auto required = static_cast<size_t>(std::count_if(log.records.begin(), log.records.end(), [](const FieldRecord& record) {
    return record.kind == FieldKind::kInteger && !record.fallback;
  }));
  const size_t place = std::min(required - 1, kSampleCount - 1);  // the last one is the field itself
  return std::clamp(kSamples[log.descending ? kSampleCount - 1 - place : place], min, max);
}

// "a", "b", "c"
std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

}  // namespace

std::string ValueText(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

Fields::Fields(const Json& object, std::string where, FieldLog* log)
    : log_(log), object_(log == nullptr ? object : log->object), where_(std::move(where)) {
  if (!object.is_object()) Fail(where_, ": ", ValueText(object), " is not an object");
}

void Fields::Record(const FieldRecord& record, const Json& sample) {
  const auto same = [&](const FieldRecord& other) { return other.key == record.key; };
  if (std::any_of(log_->records.begin(), log_->records.end(), same)) return;
  log_->records.push_back(record);
  if (record.fallback || log_->object.contains(record.key)) return;
  log_->object[record.key] = record.kind == FieldKind::kInteger ? Json(SampleSize(*log_, record.min, record.max)) : sample;
}

const Json* Fields::Find(const char* key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const Json* Fields::Find(const char* key, const char* values, const char* fallback) {
  if (log_ != nullptr) {
    FieldRecord record{key, FieldKind::kOther, std::nullopt, 0, 0, values};
    if (fallback != nullptr) record.fallback = fallback;
    Record(record, nullptr);
  }
  return Find(key);
}

const Json& Fields::Require(const char* key, const std::string& expected) {
  const Json* value = Find(key);
  if (value == nullptr) FailMissing(key, expected);
  return *value;
}

uint64_t Fields::Integer(const char* key, uint64_t min, uint64_t max, std::optional<uint64_t> fallback) {
  if (log_ != nullptr) {
    FieldRecord record{key, FieldKind::kInteger, std::nullopt, min, max};
    if (fallback) record.fallback = *fallback;
    Record(record, nullptr);
  }
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
  if (!value.is_number_integer()) FailAt(key, ValueText(value) + " is not an integer");
  if (!value.is_number_unsigned() || value.get<uint64_t>() < min || value.get<uint64_t>() > max) {
    FailAt(key, ValueText(value) + " is outside " + std::to_string(min) + " .. " + std::to_string(max));
  }
  return value.get<uint64_t>();
}

std::optional<uint64_t> Fields::OptionalInteger(const char* key, uint64_t min, uint64_t max) {
  if (log_ != nullptr) Record({key, FieldKind::kInteger, "none", min, max}, nullptr);
  if (Find(key) == nullptr) return std::nullopt;
  return Integer(key, min, max);
}

uint32_t Fields::Size(const char* key, std::optional<uint32_t> fallback, uint32_t max) {
  return static_cast<uint32_t>(Integer(key, 1, max, fallback));
}

float Fields::Number(const char* key, std::optional<float> fallback, NumberRange range) {
  if (log_ != nullptr) {
    const char* text = range == NumberRange::kPositive ? "above 0" : range == NumberRange::kNotNegative ? "0 or more" : "";
    FieldRecord record{key, FieldKind::kNumber, std::nullopt, 0, 0, text};
    if (fallback) record.fallback = *fallback;
    Record(record, 1);
  }
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "a number");
  if (!value.is_number()) FailAt(key, ValueText(value) + " is not a number");
  const double number = value.get<double>();
  if (!(std::fabs(number) <= std::numeric_limits<float>::max())) FailAt(key, ValueText(value) + " is outside f32");
  const auto rounded = static_cast<float>(number);
  if (range == NumberRange::kPositive && rounded <= 0) FailAt(key, ValueText(value) + " must be above 0");
  if (range == NumberRange::kNotNegative && rounded < 0) FailAt(key, ValueText(value) + " must not be negative");
  return rounded;
}

bool Fields::Bool(const char* key, std::optional<bool> fallback) {
  if (log_ != nullptr) {
    FieldRecord record{key, FieldKind::kBool, std::nullopt, 0, 0, "", {false, true}};
    if (fallback) record.fallback = *fallback;
    Record(record, false);
  }
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "true or false");
  if (!value.is_boolean()) FailAt(key, ValueText(value) + " is not true or false");
  return value.get<bool>();
}

std::string Fields::Text(const char* key, std::optional<std::string> fallback) {
  if (log_ != nullptr) {
    FieldRecord record{key, FieldKind::kOther, std::nullopt, 0, 0, "a string"};
    if (fallback) record.fallback = *fallback;
    Record(record, "");
  }
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "a string");
  if (!value.is_string()) FailAt(key, ValueText(value) + " is not a string");
  return value.get<std::string>();
}

uint32_t Fields::Some(const char* key, const std::vector<std::string>& names, bool fallback) {
  const std::string values = "true, false, or a list of some of " + Quoted(names);
  if (log_ != nullptr) Record({key, FieldKind::kOther, fallback, 0, 0, values, {false, true}}, fallback);
  const Json* value = Find(key);
  const uint32_t all = (1u << names.size()) - 1;
  if (value == nullptr) return fallback ? all : 0;
  if (value->is_boolean()) return value->get<bool>() ? all : 0;
  if (!value->is_array()) FailAt(key, ValueText(*value) + " is not " + values);
  uint32_t some = 0;
  for (const size_t place : PlacesOf(key, *value, names)) some |= 1u << place;
  return some;
}

std::vector<size_t> Fields::PlacesOf(const char* key, const Json& list, const std::vector<std::string>& names) const {
  std::vector<size_t> places;
  for (const Json& item : list) {
    const auto found = std::find(names.begin(), names.end(), item);
    if (found == names.end()) FailAt(key, ValueText(item) + " is not one of " + Quoted(names));
    const auto place = static_cast<size_t>(found - names.begin());
    if (std::find(places.begin(), places.end(), place) != places.end()) FailAt(key, ValueText(item) + " is there twice");
    places.push_back(place);
  }
  return places;
}

std::vector<uint32_t> Fields::Ascending(const char* key, uint32_t max, size_t max_count) {
  if (log_ != nullptr) Record({key, FieldKind::kList, std::nullopt, 1, max}, Json{0u, 3u, 5u});
  const Json& list = Require(key, "a list of integers");
  if (!list.is_array() || list.empty() || list.size() > max_count) {
    FailAt(key, ValueText(list) + " is not a list of 1 .. " + std::to_string(max_count) + " integers");
  }
  std::vector<uint32_t> numbers;
  for (const Json& item : list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > max) {
      FailAt(key, ValueText(item) + " is not an integer within 0 .. " + std::to_string(max));
    }
    const auto number = item.get<uint32_t>();
    if (!numbers.empty() && number <= numbers.back()) {
      FailAt(key, std::to_string(number) + " stands after " + std::to_string(numbers.back()) + ": not ascending");
    }
    numbers.push_back(number);
  }
  return numbers;
}

void Fields::Fix(const char* key, const Json& value) {
  if (log_ != nullptr) Record({key, FieldKind::kFixed, value}, nullptr);
  const Json* given = Find(key);
  if (given != nullptr && *given != value)
    FailAt(key, ValueText(*given) + " is not " + ValueText(value) + ", the only value that it has in this system");
}

void Fields::Finish(const Hint& hint) const {
  if (log_ != nullptr) return;
  for (const auto& field : object_.items()) {
    if (known_.count(field.key()) != 0) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    Fail(where_, ": unknown field ", ValueText(field.key()), tools::DidYouMean(field.key(), known), hint ? hint(field.key()) : "");
  }
}

void Fields::FailMissing(const std::string& key, const std::string& expected) const {
  std::set<std::string> known = known_;
  if (names_ && log_ == nullptr) {
    for (std::string& name : names_()) known.insert(std::move(name));
  }
  std::vector<std::string> unknown;
  for (const auto& field : object_.items()) {
    if (known.count(field.key()) == 0) unknown.push_back(field.key());
  }
  const std::string slip = tools::Nearest(key, unknown);
  Fail(where_, ": the field \"", key, "\" is missing, expected ", expected,
       slip.empty() ? "" : "; found the unknown field " + ValueText(slip) + ": did you mean \"" + key + "\"?");
}

void Fields::FailAt(const std::string& key, const std::string& message) const { Fail(where_, ": ", key, ": ", message); }

}  // namespace tarn::convert
