#include "tools/convert/json/json.h"

#include <cmath>
#include <limits>
#include <utility>

#include "tools/common/suggestion.h"

namespace tarn::convert {
namespace {

constexpr size_t kShownBytes = 60;

}  // namespace

std::string ValueText(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) Fail(where_, ": ", ValueText(object), " is not an object");
}

const Json* Fields::Find(const char* key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const Json& Fields::Require(const char* key, const std::string& expected) {
  const Json* value = Find(key);
  if (value == nullptr) Fail(where_, ": the field \"", key, "\" is missing, expected ", expected);
  return *value;
}

uint64_t Fields::Integer(const char* key, uint64_t min, uint64_t max, std::optional<uint64_t> fallback) {
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
  if (!value.is_number_integer()) FailAt(key, ValueText(value) + " is not an integer");
  if (!value.is_number_unsigned() || value.get<uint64_t>() < min || value.get<uint64_t>() > max) {
    FailAt(key, ValueText(value) + " is outside " + std::to_string(min) + " .. " + std::to_string(max));
  }
  return value.get<uint64_t>();
}

uint32_t Fields::Size(const char* key, std::optional<uint32_t> fallback, uint32_t max) {
  return static_cast<uint32_t>(Integer(key, 1, max, fallback));
}

float Fields::Number(const char* key, std::optional<float> fallback) {
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "a number");
  if (!value.is_number()) FailAt(key, ValueText(value) + " is not a number");
  const double number = value.get<double>();
  if (!(std::fabs(number) <= std::numeric_limits<float>::max())) FailAt(key, ValueText(value) + " is outside f32");
  return static_cast<float>(number);
}

float Fields::PositiveNumber(const char* key, std::optional<float> fallback) {
  const float number = Number(key, fallback);
  if (number <= 0) FailAt(key, ValueText(*Find(key)) + " must be above 0");
  return number;
}

bool Fields::Bool(const char* key, std::optional<bool> fallback) {
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "true or false");
  if (!value.is_boolean()) FailAt(key, ValueText(value) + " is not true or false");
  return value.get<bool>();
}

std::string Fields::Text(const char* key, std::optional<std::string> fallback) {
  if (fallback && Find(key) == nullptr) return *fallback;
  const Json& value = Require(key, "a string");
  if (!value.is_string()) FailAt(key, ValueText(value) + " is not a string");
  return value.get<std::string>();
}

std::vector<uint32_t> Fields::Ascending(const char* key, uint32_t max, size_t max_count) {
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
  const Json* given = Find(key);
  if (given != nullptr && *given != value)
    FailAt(key, ValueText(*given) + " is not " + ValueText(value) + ", the only value that it has in this system");
}

void Fields::Finish() const {
  for (const auto& field : object_.items()) {
    if (known_.count(field.key()) != 0) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    Fail(where_, ": unknown field ", ValueText(field.key()), tools::DidYouMean(field.key(), known));
  }
}

void Fields::FailAt(const std::string& key, const std::string& message) const { Fail(where_, ": ", key, ": ", message); }

}  // namespace tarn::convert
