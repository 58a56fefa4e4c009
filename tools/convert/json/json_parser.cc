// ParseJson and ReadMembers: values built from the events of the library's parser. Its own builder keeps one of two equal keys
// without a word, looks through all members of an object again whenever one of them ends, and says what is wrong in words of its
// own.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxValues = size_t{1} << 22;
constexpr size_t kShownBytes = 40;
constexpr int kNumberOverflow = 406;  // the library's error

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsWord(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '+' || c == '.';
}

class Builder : public nlohmann::json_sax<Json> {
 public:
  // Without `on_member` the whole document becomes root().
  Builder(std::string_view text, const std::string& where, const OnMember* on_member)
      : text_(text), where_(where), on_member_(on_member) {}

  Json& root() { return root_; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*digits*/) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // no such thing in text
  bool start_object(std::size_t /*members*/) override { return Open(Json::object()); }
  bool start_array(std::size_t /*elements*/) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& key) override {
    Level& level = open_.back();
    if (level.value.contains(key)) Fail(where_, ": the key ", ValueText(key), " stands there twice");
    level.key = std::move(key);
    level.awaits_value = true;
    return true;
  }

  bool parse_error(std::size_t read, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    const size_t at = read - 1;  // the character that does not fit; at the end one behind the last
    const std::string_view mark = text_.substr(0, 2);
    if (mark == "\xFF\xFE" || mark == "\xFE\xFF") Fail(where_, ": UTF-16 text, expected UTF-8: save it as UTF-8");
    const std::string_view before = text_.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n');
    const size_t begin = before.rfind('\n') + 1;  // of the line: npos + 1 is 0
    Fail(where_, ": not valid JSON: line ", line + 1, ", column ", at - begin + 1, ": expected ", Expected(at, error),
         at >= text_.size() ? ", but the text ends" : ", found '" + Shown(begin, at) + "'");
  }

 private:
  struct Level {
    Json value;
    std::string key;  // of an object: of the member that is being read
    bool awaits_value = false;
  };

  bool Open(Json value) {
    if (open_.size() == kMaxDepth) Fail(where_, ": more than ", kMaxDepth, " levels of nesting");
    open_.push_back({std::move(value), {}, false});
    return true;
  }

  bool Close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return Add(std::move(value));
  }

  bool Add(Json value) {
    if (++values_ > kMaxValues) Fail(where_, ": more than ", kMaxValues, " values");
    if (open_.empty()) {
      root_ = std::move(value);
      done_ = true;
      return true;
    }
    Level& level = open_.back();
    level.awaits_value = false;
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else if (on_member_ != nullptr && open_.size() == 1) {
      (*on_member_)(level.key, value);
      level.value[level.key] = nullptr;  // of the member its key alone is kept
      values_ = 0;
    } else {
      level.value[level.key] = std::move(value);
    }
    return true;
  }

  // What could stand where a token ends, or fails, at `at`.
  std::string Expected(size_t at, const nlohmann::detail::exception& error) const {
    if (error.id == kNumberOverflow) return "a number that a double can hold";
    if (std::strstr(error.what(), "invalid string") != nullptr) return "a closing quote, UTF-8 and JSON's escapes in a string";
    if (open_.empty()) return done_ ? "nothing behind the value" : "a value";
    const Level& level = open_.back();
    if (level.awaits_value) {  // behind the quote of its key there is no other
      return text_[text_.find_last_of("\":", at - 1)] == ':' ? "a value" : "':' and a value";
    }
    const bool after_comma = LastBefore(at) == ',';
    if (level.value.is_array()) return after_comma ? "a value" : level.value.empty() ? "a value or ']'" : "',' or ']'";
    return after_comma ? "a key in double quotes" : level.value.empty() ? "a key in double quotes or '}'" : "',' or '}'";
  }

  // The character before the word that ends at `at`, and the space before it.
  char LastBefore(size_t at) const {
    size_t end = std::min(at, text_.size());
    if (at < text_.size() && IsWord(text_[at])) {
      while (end > 0 && IsWord(text_[end - 1])) --end;
    }
    while (end > 0 && IsSpace(text_[end - 1])) --end;
    return end > 0 ? text_[end - 1] : '\0';
  }

  // The end of the line up to `at`, which may be the line break.
  std::string Shown(size_t begin, size_t at) const {
    const size_t end = text_[at] == '\n' ? at : at + 1;
    if (end - begin <= kShownBytes) return std::string(text_.substr(begin, end - begin));
    return "..." + std::string(text_.substr(end - kShownBytes, kShownBytes));
  }

  const std::string_view text_;
  const std::string& where_;
  const OnMember* const on_member_;
  std::vector<Level> open_;
  Json root_;
  bool done_ = false;
  size_t values_ = 0;  // of the document, or of this member
};

}  // namespace

Json ParseJson(std::string_view text, const std::string& where) {
  Builder builder(text, where, nullptr);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.root());
}

void ReadMembers(std::string_view text, const std::string& where, const OnMember& on_member) {
  Builder builder(text, where, &on_member);
  Json::sax_parse(text.begin(), text.end(), &builder);
  if (!builder.root().is_object()) Fail(where, ": not an object");
}

}  // namespace tarn::convert
