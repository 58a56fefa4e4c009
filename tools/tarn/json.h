// JSON that is written. Values of other libraries (nlohmann-json 3.11) need memory to be destroyed, and a failed allocation leaves
// some that cannot be: a tool without memory then ends without its clean-up, or crashes. This one takes memory only to grow.
#ifndef TARN_TOOLS_TARN_JSON_H_
#define TARN_TOOLS_TARN_JSON_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tarn_cli {

class Json {
 public:
  struct Field;

  Json() : Json(nullptr) {}
  Json(std::nullptr_t) : text_("null") {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Json(T value) : text_(NumberText(value)) {}
  Json(const char* string) : kind_(Kind::kString), text_(string) {}
  Json(std::string string) : kind_(Kind::kString), text_(std::move(string)) {}
  template <typename T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json(nullptr)) {}
  template <typename T>
  Json(const std::vector<T>& array);
  // An object: {{"lines", 3}, {"exact", 2}}.
  Json(std::initializer_list<Field> fields);
  static Json Array() { return Json(std::vector<Json>()); }
  static Json Object() { return Json(std::initializer_list<Field>()); }

  // Of an object: another field. `key` is a constant of the program, and not there yet.
  void Add(const char* key, Json value);
  // Of an array: another item.
  void Add(Json item);

  bool is_null() const { return kind_ == Kind::kScalar && text_ == "null"; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_structured() const { return kind_ == Kind::kArray || kind_ == Kind::kObject; }
  const std::vector<Field>& fields() const { return items_; }  // of an object, in their order
  // Of a string its bytes, of null, a boolean or a number the JSON.
  const std::string& text() const { return text_; }

  // ASCII without control characters: names come from files, and bytes that are no UTF-8 become U+FFFD. With `indent` every item
  // has a line of its own, `indent` spaces further in.
  std::string Dump(std::optional<int> indent = std::nullopt) const;

 private:
  enum class Kind { kScalar, kString, kArray, kObject };

  static std::string NumberText(bool value) { return value ? "true" : "false"; }
  static std::string NumberText(double value);
  static std::string NumberText(float value) { return NumberText(double{value}); }
  template <typename T>
  static std::string NumberText(T integer) {
    return std::to_string(integer);
  }
  void AppendTo(std::string* out, std::optional<int> indent, int depth) const;

  Kind kind_ = Kind::kScalar;
  std::string text_;
  std::vector<Field> items_;  // of an array without keys
};

struct Json::Field {
  const char* key;
  Json value;
};

template <typename T>
Json::Json(const std::vector<T>& array) : kind_(Kind::kArray) {
  for (const T& item : array) Add(Json(item));
}

inline Json::Json(std::initializer_list<Field> fields) : kind_(Kind::kObject), items_(fields) {}

inline void Json::Add(const char* key, Json value) { items_.push_back({key, std::move(value)}); }

inline void Json::Add(Json item) { items_.push_back({nullptr, std::move(item)}); }

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_JSON_H_
