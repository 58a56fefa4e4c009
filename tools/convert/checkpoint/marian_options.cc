#include "tools/convert/checkpoint/marian_options.h"

#include <cstdlib>

#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \r"), end = text.find_last_not_of(" \r");
  return begin == std::string_view::npos ? "" : text.substr(begin, end - begin + 1);
}

class Options {
 public:
  explicit Options(const std::string& where) : where_(where) {}

  void Add(std::string_view line) {
    ++line_;
    const std::string_view text = Trimmed(line);
    if (text.empty() || text[0] == '#' || line == "---" || line == "...") return;
    if (text == "[]" || text[0] == '-') return AddToList(text);
    const size_t colon = text.find(':');
    const bool ends = colon != std::string_view::npos && (colon + 1 == text.size() || text[colon + 1] == ' ');
    if (!ends || colon == 0 || line[0] == ' ' || text.find_first_of("\"'{}[]&*!|>%@`") < colon) FailAtLine(text);
    key_ = text.substr(0, colon);
    if (object_.contains(key_)) Fail(where_, ": line ", line_, ": ", ValueText(Json(key_)), " is there twice");
    const std::string_view value = Trimmed(text.substr(colon + 1));
    open_ = value.empty();
    object_[key_] = open_ ? Json() : Value(value);
  }

  const Json& object() const { return object_; }

 private:
  [[noreturn]] void FailAtLine(std::string_view text) const {
    Fail(where_, ": line ", line_, ": ", ValueText(Json(std::string(text))),
         " is not a line \"key: value\" or \"- value\", as Marian writes them");
  }

  // A value of the list below the last key, or an empty one.
  void AddToList(std::string_view text) {
    Json* const list = open_ ? &object_[key_] : nullptr;
    if (list == nullptr || (text == "[]" && !list->is_null())) FailAtLine(text);
    if (list->is_null()) *list = Json::array();
    if (text == "[]") {
      open_ = false;
      return;
    }
    if (text.size() < 3 || text[1] != ' ') FailAtLine(text);
    list->push_back(Scalar(Trimmed(text.substr(2))));
  }

  // A list in one line, or a scalar.
  Json Value(std::string_view text) const {
    if (text[0] != '[') return Scalar(text);
    if (text.back() != ']') FailAtLine(text);
    Json list = Json::array();
    text = Trimmed(text.substr(1, text.size() - 2));
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      list.push_back(Scalar(Trimmed(text.substr(0, comma))));
      text = Trimmed(text.substr(std::min(comma + 1, text.size())));
    }
    return list;
  }

  Json Scalar(std::string_view text) const {
    if (text.empty()) FailAtLine(text);
    if (text[0] == '"' || text[0] == '\'') {
      // Marian's options have no characters that want an escape.
      if (text.size() < 2 || text.back() != text[0] || text.find_first_of("\\\"'", 1) != text.size() - 1) FailAtLine(text);
      return std::string(text.substr(1, text.size() - 2));
    }
    if (text.find_first_of("{}[]&*!|>%@`\"'") == 0) FailAtLine(text);
    if (text == "true" || text == "false") return text == "true";
    if (text == "~" || text == "null") return nullptr;
    const Json number = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    return number.is_number() ? number : Json(std::string(text));
  }

  const std::string& where_;
  Json object_ = Json::object();
  std::string key_;
  bool open_ = false;  // the last key has no value behind it
  size_t line_ = 0;
};

}  // namespace

std::string MarianOptions(std::string_view yaml, const std::string& where) {
  Options options(where);
  for (size_t begin = 0; begin < yaml.size();) {
    const size_t end = std::min(yaml.find('\n', begin), yaml.size());
    options.Add(yaml.substr(begin, end - begin));
    begin = end + 1;
  }
  Json object = options.object();
  if (object.contains("model_type")) Fail(where, ": model_type: is no option of Marian");
  object["model_type"] = "marian_nmt";
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tarn::convert
