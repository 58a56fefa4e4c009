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
#include <vector>

#include "tools/convert/json/error.h"

namespace tarn::convert {

using Json = nlohmann::json;

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

// Reads the fields of one object. Every getter throws a ConvertError that names the field and its value if the type or the range is
// wrong, or if there is neither a value nor a default. Finish() throws if the object has a field that no getter asked for.
class Fields {
 public:
  // `where` begins every message: "config.json", "config.json: attention[2]". Errors: `object` is not an object.
  Fields(const Json& object, std::string where);

  bool Has(const char* key) const { return object_.contains(key); }
  // The value, or nullptr; the field is known from then on.
  const Json* Find(const char* key);

  uint64_t Integer(const char* key, uint64_t min, uint64_t max, std::optional<uint64_t> fallback = std::nullopt);
  // 1 .. max
  uint32_t Size(const char* key, std::optional<uint32_t> fallback = std::nullopt, uint32_t max = kMaxSize);
  // finite as f32
  float Number(const char* key, std::optional<float> fallback = std::nullopt);
  float PositiveNumber(const char* key, std::optional<float> fallback = std::nullopt);
  bool Bool(const char* key, std::optional<bool> fallback = std::nullopt);
  std::string Text(const char* key, std::optional<std::string> fallback = std::nullopt);

  // `hint` ends the message of a name that is none of them.
  template <typename T, size_t kCount>
  T OneOf(const char* key, const Choice<T> (&choices)[kCount], std::optional<T> fallback = std::nullopt, const char* hint = "") {
    const Json* value = Find(key);
    if (value == nullptr && fallback) return *fallback;
    std::string names;
    for (const Choice<T>& choice : choices) names += (names.empty() ? "" : ", ") + std::string(choice.name);
    const std::string text = Require(key, "one of " + names).is_string() ? value->get<std::string>() : Text(key);
    for (const Choice<T>& choice : choices) {
      if (text == choice.name) return choice.value;
    }
    FailAt(key, ValueText(*value) + " is not one of " + names + hint);
  }

  // One of `names`, which are those of the first values of an enum.
  template <typename T, size_t kCount>
  T OneOf(const char* key, const char* const (&names)[kCount], std::optional<T> fallback = std::nullopt) {
    Choice<T> choices[kCount];
    for (size_t i = 0; i < kCount; ++i) choices[i] = {names[i], static_cast<T>(i)};
    return OneOf<T>(key, choices, fallback);
  }

  // A list of integers, each within 0 .. max and above the one before it; at least one, at most `max_count`.
  std::vector<uint32_t> Ascending(const char* key, uint32_t max, size_t max_count);
  // A field without a choice: `value`, if it stands there at all.
  void Fix(const char* key, const Json& value);

  void Finish() const;
  [[noreturn]] void FailAt(const std::string& key, const std::string& message) const;
  const std::string& where() const { return where_; }

  static constexpr uint32_t kMaxSize = 1u << 24;  // beyond every model; no product of two overflows 64 bits

 private:
  // The value. Errors: there is none; `expected` says what could be there.
  const Json& Require(const char* key, const std::string& expected);

  const Json& object_;
  const std::string where_;
  std::set<std::string> known_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_JSON_JSON_H_
