#include "tools/convert/chat/jinja_lexer.h"

#include <algorithm>
#include <cctype>

#include "tools/convert/chat/jinja_text.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

using Kind = JinjaToken::Kind;

// One kind of line break, and none at the end: as Jinja reads a source.
std::string NormalizeLines(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    const bool is_break = source[i] == '\r' || source[i] == '\n';
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    text.push_back(is_break ? '\n' : source[i]);
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// ASCII, since the other letters of Unicode have no place in templates.
bool IsNameByte(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_'; }
bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(NormalizeLines(source)) {}

  std::vector<JinjaToken> Run() {
    while (at_ < source_.size()) {
      const size_t tag = FindTag();
      AddData(tag);
      if (tag == source_.size()) break;
      const char sort = source_[tag + 1];
      const bool has_sign = tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+');
      at_ = tag + (has_sign ? 3 : 2);
      if (sort == '#') {
        SkipComment();
        continue;
      }
      Add(sort == '%' ? Kind::kBlockBegin : Kind::kPrintBegin, "");
      LexTag(sort == '%' ? "%}" : "}}", sort == '%' ? Kind::kBlockEnd : Kind::kPrintEnd);
    }
    Add(Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  template <typename... Parts>
  [[noreturn]] void FailHere(const Parts&... parts) const {
    Fail("line ", line_, ": ", parts...);
  }

  void Add(Kind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  void CountLines(size_t begin, size_t end) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(begin), source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  }
  bool StartsWith(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }

  size_t FindTag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' && (source_[i + 1] == '%' || source_[i + 1] == '{' || source_[i + 1] == '#')) return i;
    }
    return source_.size();
  }

  // The text up to a tag, without the spaces that the tag removes.
  void AddData(size_t tag) {
    std::string_view data = std::string_view(source_).substr(at_, tag - at_);
    CountLines(at_, tag);
    if (tag < source_.size()) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      if (sign == '-') {
        data = StripSpaces(data, false, true);
      } else if (sign != '+' && source_[tag + 1] != '{') {
        const size_t line = data.rfind('\n') + 1;  // 0 where there is none
        if ((line > 0 || line_starting_) && StripSpaces(data.substr(line), true, false).empty()) data = data.substr(0, line);
      }
    }
    if (!data.empty()) Add(Kind::kData, std::string(data));
  }

  // The end of a tag is at at_, and `bytes` long: what it removes behind it.
  void EndTag(size_t bytes, bool is_print) {
    const char sign = source_[at_];
    const size_t begin = at_;
    at_ += bytes;
    if (sign == '-') {
      const std::string_view rest = std::string_view(source_).substr(at_);
      at_ += rest.size() - StripSpaces(rest, true, false).size();
    } else if (sign != '+' && !is_print && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
    CountLines(begin, at_);
  }

  void SkipComment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) FailHere("the comment has no end");
    const bool has_sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    CountLines(at_, end);
    at_ = has_sign ? end - 1 : end;
    EndTag(has_sign ? 3 : 2, false);
  }

  void LexTag(std::string_view close, Kind end_kind) {
    std::string open;  // brackets
    for (;;) {
      while (at_ < source_.size() && std::isspace(static_cast<unsigned char>(source_[at_])) != 0) {
        if (source_[at_++] == '\n') ++line_;
      }
      if (at_ >= source_.size()) FailHere("the tag has no end");
      // "+}}" is no end of a print tag.
      const bool is_print = end_kind == Kind::kPrintEnd;
      const bool has_sign = source_[at_] == '-' || (source_[at_] == '+' && !is_print);
      if (open.empty() && source_.compare(at_ + (has_sign ? 1 : 0), 2, close) == 0) {
        Add(end_kind, "");
        return EndTag(has_sign ? 3 : 2, is_print);
      }
      LexToken(&open);
    }
  }

  void LexToken(std::string* open) {
    const char first = source_[at_];
    if (first == '\'' || first == '"') return LexText(first);
    if (IsNameByte(first)) {
      size_t end = at_;
      while (end < source_.size() && IsNameByte(source_[end])) ++end;
      const std::string word = source_.substr(at_, end - at_);
      const bool is_number = IsDigit(first);
      const bool is_float = is_number && end + 1 < source_.size() && source_[end] == '.' && IsDigit(source_[end + 1]);
      if (is_float || (is_number && !std::all_of(word.begin(), word.end(), IsDigit)))
        FailHere("the number ", word, " is not supported, a decimal integer is");
      if (is_number && word.size() > 1 && word[0] == '0') FailHere("the number ", word, " begins with 0");
      Add(is_number ? Kind::kInteger : Kind::kName, word);
      at_ = end;
      return;
    }
    for (const std::string_view two : {"==", "!=", ">=", "<=", "//", "**"}) {
      if (StartsWith(two)) return AddOperator(two);
    }
    if (std::string_view("+-/*%~[](){}<>=.:|,").find(first) == std::string_view::npos) {
      FailHere("the character \"", first, "\" is not expected here");
    }
    if (std::string_view("([{").find(first) != std::string_view::npos) open->push_back(first);
    if (first == ')' || first == ']' || first == '}') {
      const char partner = first == ')' ? '(' : first == ']' ? '[' : '{';
      if (open->empty() || open->back() != partner) FailHere("\"", first, "\" closes no bracket");
      open->pop_back();
    }
    AddOperator(std::string_view(source_).substr(at_, 1));
  }

  void AddOperator(std::string_view text) {
    Add(Kind::kOperator, std::string(text));
    at_ += text.size();
  }

  void LexText(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) FailHere("the text has no end");
    std::string text;
    for (size_t i = at_ + 1; i < end;) i = AddCharacter(i, &text);
    Add(Kind::kText, text);
    CountLines(at_, end);
    at_ = end + 1;
  }

  // Returns what comes next.
  size_t AddCharacter(size_t at, std::string* text) {
    if (source_[at] != '\\') {
      text->push_back(source_[at]);
      return at + 1;
    }
    const char escape = source_[at + 1];
    constexpr std::string_view kEscapes = "ntr\\'\"abfv\n", kMeanings = "\n\t\r\\'\"\a\b\f\v";
    const size_t found = kEscapes.find(escape);
    if (escape == '\n') return at + 2;
    if (found != std::string_view::npos) {
      text->push_back(kMeanings[found]);
      return at + 2;
    }
    const size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    if (digits == 0 && (IsDigit(escape) || escape == 'N')) FailHere("the escape \\", escape, " is not supported");
    if (digits == 0) {  // none
      text->push_back('\\');
      return at + 1;
    }
    uint64_t code = 0;
    for (size_t i = at + 2; i < at + 2 + digits; ++i) {
      if (i >= source_.size() || std::isxdigit(static_cast<unsigned char>(source_[i])) == 0) {
        FailHere("\\", escape, " expects ", digits, " digits");
      }
      code = code * 16 + static_cast<uint64_t>(std::stoi(source_.substr(i, 1), nullptr, 16));
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) FailHere("\\", escape, " gives no character");
    AppendUtf8(static_cast<uint32_t>(code), text);
    return at + 2 + digits;
  }

  const std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // a line begins at at_
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::vector<JinjaToken> LexJinja(std::string_view source) {
  if (source.size() > kMaxJinjaBytes) Fail("the template has ", source.size(), " bytes, at most ", kMaxJinjaBytes, " expected");
  return Lexer(source).Run();
}

}  // namespace tarn::convert
