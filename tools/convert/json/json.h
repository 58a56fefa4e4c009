// Strict JSON: no duplicate keys, no deep nesting, and objects whose every field somebody has to ask for.
#ifndef TARN_TOOLS_CONVERT_JSON_JSON_H_
#define TARN_TOOLS_CONVERT_JSON_JSON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/common/suggestion.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/field_log.h"

namespace tarn::convert {

// Errors: not JSON, a key twice in one object, more than 64 levels, more than 4 million values; the message begins with `where`.
Json ParseJson(std::string_view text, const std::string& where);

// Calls on_member(key, value) for the members of an object, in their order. A value is gone when its call returns: an object of any
// size takes the memory of its keys and of its largest member.
// Errors: as ParseJson, the number of values being that of one member; `text` is not an object.
using OnMember = std::function<void(const std::string& key, const Json& value)>;
void ReadMembers(std::string_view text, const std::string& where, const OnMember& on_member);

// A value as an error message shows it, shortened.
std::string ValueText(const Json& value);

// A name that a field may have, and what it stands for.
template <typename T>
struct Choice {
  const char* name;
  T value;
};

// The numbers that a field takes.
enum class NumberRange : uint8_t { kAny, kPositive, kNotNegative };

// Reads the fields of one object. Every getter throws a ConvertError that names the field and its value if the type or the range is
// wrong, or if there is neither a value nor a default. Finish() throws if the object has a field that no getter asked for.
class Fields {
 public:
  // `where` begins every message: "config.json", "config.json: attention[2]". With a log, every getter records its field there, and
  // a required field that is missing gets a sample value. Errors: `object` is not an object.
  Fields(const Json& object, std::string where, FieldLog* log = nullptr);

  // All fields that the object may have, for the message about a required one that is missing: another field with a name near to
  // its own is a slip. Without them, those that were asked for. Called for that message alone.
  using Names = std::function<std::vector<std::string>()>;
  void SetNames(Names names) { names_ = std::move(names); }

  bool Has(const char* key) const { return object_.contains(key); }
  // The value, or nullptr; the field is known from then on.
  const Json* Find(const char* key);
  // The same for a field that the other getters cannot read. `values`, `fallback`: what --list-fields says of it; nullptr:
  // required.
  const Json* Find(const char* key, const char* values, const char* fallback);

  uint64_t Integer(const char* key, uint64_t min, uint64_t max, std::optional<uint64_t> fallback = std::nullopt);
  // min .. max, if it is there
  std::optional<uint64_t> OptionalInteger(const char* key, uint64_t min, uint64_t max);
  // 1 .. max
  uint32_t Size(const char* key, std::optional<uint32_t> fallback = std::nullopt, uint32_t max = kMaxSize);
  // finite as f32
  float Number(const char* key, std::optional<float> fallback = std::nullopt, NumberRange range = NumberRange::kAny);
  float PositiveNumber(const char* key, std::optional<float> fallback = std::nullopt) {
    return Number(key, fallback, NumberRange::kPositive);
  }
  float NonNegativeNumber(const char* key, std::optional<float> fallback = std::nullopt) {
    return Number(key, fallback, NumberRange::kNotNegative);
  }
  bool Bool(const char* key, std::optional<bool> fallback = std::nullopt);
  std::string Text(const char* key, std::optional<std::string> fallback = std::nullopt);

  // `hint` ends the message of a name that is none of them.
  template <typename T, size_t kCount>
  T OneOf(const char* key, const Choice<T> (&choices)[kCount], std::optional<T> fallback = std::nullopt, const char* hint = "") {
    if (log_ != nullptr) {
      FieldRecord record{key, FieldKind::kChoice, std::nullopt};
      for (const Choice<T>& choice : choices) {
        record.choices.emplace_back(choice.name);
        if (fallback && choice.value == *fallback) record.fallback = choice.name;
      }
      Record(record, choices[0].name);
    }
    const Json* value = Find(key);
    if (value == nullptr && fallback) return *fallback;
    std::string names;
    std::vector<std::string> known;
    for (const Choice<T>& choice : choices) {
      names += (names.empty() ? "" : ", ") + std::string(choice.name);
      known.emplace_back(choice.name);
    }
    const std::string text = Require(key, "one of " + names).is_string() ? value->get<std::string>() : Text(key);
    for (const Choice<T>& choice : choices) {
      if (text == choice.name) return choice.value;
    }
    FailAt(key, ValueText(*value) + " is not one of " + names + tools::DidYouMean(text, known) + hint);
  }

  // One of `names`, which are those of the first values of an enum.
  template <typename T, size_t kCount>
  T OneOf(const char* key, const char* const (&names)[kCount], std::optional<T> fallback = std::nullopt) {
    Choice<T> choices[kCount];
    for (size_t i = 0; i < kCount; ++i) choices[i] = {names[i], static_cast<T>(i)};
    return OneOf<T>(key, choices, fallback);
  }

  // One of the entries of a list of variants, by their `name`; an enum numbers them.
  template <typename T, typename Info, size_t kCount>
  T OneOfList(const char* key, const Info (&list)[kCount], std::optional<T> fallback = std::nullopt) {
    const char* names[kCount];
    for (size_t i = 0; i < kCount; ++i) names[i] = list[i].name;
    return OneOf<T>(key, names, fallback);
  }

  // Which of `names` the field has: false for none of them, true for all, or a list of some, in any order. Bit i is names[i].
  uint32_t Some(const char* key, const std::vector<std::string>& names, bool fallback);
  // The places in `names` of the strings of a list, which is the value of a field. Errors: a name that is unknown, or there twice.
  std::vector<size_t> PlacesOf(const char* key, const Json& list, const std::vector<std::string>& names) const;

  // A list of integers, each within 0 .. max and above the one before it; at least one, at most `max_count`.
  std::vector<uint32_t> Ascending(const char* key, uint32_t max, size_t max_count);
  // A field without a choice: `value`, if it stands there at all.
  void Fix(const char* key, const Json& value);

  // `hint` ends the message of an unknown field, after the known one that is near.
  using Hint = std::function<std::string(const std::string& key)>;
  void Finish(const Hint& hint = nullptr) const;
  [[noreturn]] void FailAt(const std::string& key, const std::string& message) const;
  // `expected` says what could be there.
  [[noreturn]] void FailMissing(const std::string& key, const std::string& expected) const;
  const std::string& where() const { return where_; }

  static constexpr uint32_t kMaxSize = 1u << 24;  // beyond every model; no product of two overflows 64 bits

 private:
  // The value. Errors: as FailMissing, if there is none.
  const Json& Require(const char* key, const std::string& expected);
  void Record(const FieldRecord& record, const Json& sample);

  FieldLog* const log_;
  const Json& object_;  // with a log, its copy, which gets the sample values
  const std::string where_;
  std::set<std::string> known_;
  Names names_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_JSON_JSON_H_
