#include "tools/json_schema/pattern.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "tools/json_schema/rules.h"
#include "tools/json_schema/schema.h"

namespace tarn::tools {
namespace {

constexpr uint32_t kMostCode = 0x10FFFF;
constexpr uint32_t kMostCounted = 1u << 20;  // of a repetition {m,n} of a grammar

struct Range {
  uint32_t low, high;
};
using Ranges = std::vector<Range>;

// In order, none touching another.
Ranges Joined(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.low < b.low; });
  Ranges joined;
  for (const Range& range : ranges) {
    if (!joined.empty() && range.low <= joined.back().high + 1) {
      joined.back().high = std::max(joined.back().high, range.high);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

Ranges Without(const Ranges& all, const Ranges& gone) {
  Ranges left = Joined(all);
  for (const Range& hole : Joined(gone)) {
    Ranges next;
    for (const Range& range : left) {
      if (range.low < hole.low) next.push_back({range.low, std::min(range.high, hole.low - 1)});
      if (range.high > hole.high) next.push_back({std::max(range.low, hole.high + 1), range.high});
    }
    left = next;
  }
  return left;
}

bool Has(const Ranges& ranges, uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) { return code >= range.low && code <= range.high; });
}

std::string CodeText(uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof(text), "\\U%08x", code);
  return text;
}

// One character of these in a string of JSON: as it is, or as the escape that JSON wants.
std::string CharacterRule(const Ranges& ranges) {
  const Ranges plain = Without(ranges, {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0xD800, 0xDFFF}});
  std::string all;
  if (!plain.empty()) {
    all = "[";
    for (const Range& range : plain) all += CodeText(range.low) + (range.high > range.low ? "-" + CodeText(range.high) : "");
    all += "]";
  }
  constexpr char kShort[][2] = {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
  for (uint32_t code = 0; code <= '\\'; ++code) {
    if (!Has(ranges, code) || (code > 0x1F && code != '"' && code != '\\')) continue;
    char escape[8];
    std::snprintf(escape, sizeof(escape), "\\u%04x", code);
    for (const auto& known : kShort) {
      if (code == static_cast<uint32_t>(known[0])) std::snprintf(escape, sizeof(escape), "\\%c", known[1]);
    }
    all += (all.empty() ? "" : " | ") + Quoted(escape);
  }
  return "(" + all + ")";
}

class PatternReader {
 public:
  PatternReader(const std::string& text, const std::string& at) : text_(text), where_(at) {}

  std::string Read() {
    const bool from_begin = Take('^');
    size_t backslashes = 0;
    while (backslashes + 1 < text_.size() && text_[text_.size() - 2 - backslashes] == '\\') ++backslashes;
    const bool to_end = text_.size() > at_ && text_.back() == '$' && backslashes % 2 == 0;
    if (to_end) text_.pop_back();
    const std::string body = Alternatives(0);
    if (!AtEnd()) Fail("')' without '('");
    if (alternatives_ && (from_begin || to_end)) Fail("'^' or '$' beside '|': put the alternatives into (...)");
    return (from_begin ? "" : "key-char* ") + ("(" + body + ")") + (to_end ? "" : " key-char*");
  }

 private:
  bool AtEnd() const { return at_ == text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void Fail(const std::string& what) const { FailFrom(at_, what); }
  // At the character that begins `offset` bytes behind the begin.
  [[noreturn]] void FailFrom(size_t offset, const std::string& what) const {
    const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text_.size()));
    FailAt(where_, "at character " + std::to_string(std::count_if(text_.begin(), end, begins) + 1) + " of the pattern: " + what +
                       " is not supported");
  }

  std::string Alternatives(int depth) {
    if (depth > 40) Fail("more than 40 groups inside each other");
    std::string all = Sequence(depth);
    while (Take('|')) {
      alternatives_ = alternatives_ || depth == 0;
      all += " | " + Sequence(depth);
    }
    return all;
  }

  std::string Sequence(int depth) {
    std::string all = "\"\"";
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      all += " " + Element(depth);
      all += Quantifier();
    }
    return all;
  }

  std::string Element(int depth) {
    if (Take('(')) {
      if (Take('?') && !Take(':')) Fail("a group other than (...) and (?:...)");
      const std::string group = Alternatives(depth + 1);
      if (!Take(')')) Fail("a group without ')'");
      return "(" + group + ")";
    }
    if (Take('[')) return CharacterRule(Class());
    if (Take('.')) return CharacterRule(Without({{0, kMostCode}}, {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    if (Peek() == '^' || Peek() == '$') Fail("'^' or '$' inside a pattern");
    if (std::strchr("*+?{}", Peek()) != nullptr) Fail("'" + std::string(1, Peek()) + "' here");
    bool is_class = false;
    return CharacterRule(Character(&is_class));
  }

  std::string Quantifier() {
    std::string counts;
    if (Peek() == '*' || Peek() == '+' || Peek() == '?') {
      counts = text_[at_++];
    } else if (Peek() == '{') {
      counts = Counts();
    }
    if (!counts.empty() && (Peek() == '?' || Peek() == '+' || Peek() == '*' || Peek() == '{')) Fail("a second quantifier");
    return counts;
  }

  // {m}, {m,} or {m,n}. What is none is no text either: patterns are read as with the flag "u", where '{' needs a backslash.
  std::string Counts() {
    const size_t begin = at_++;
    const std::optional<uint32_t> least = Number(begin);
    std::optional<uint32_t> most = least;
    const bool is_range = least && Take(',');
    if (is_range) most = Number(begin);
    if (!least || !Take('}')) FailFrom(begin, "'{' without {m}, {m,} or {m,n}");
    if (most && *most < *least) FailFrom(begin, text_.substr(begin, at_ - begin) + " with the second number below the first");
    return "{" + std::to_string(*least) + (is_range ? "," + (most ? std::to_string(*most) : "") : "") + "}";
  }

  // Of the quantifier that begins at `begin`; nothing: there are no digits.
  std::optional<uint32_t> Number(size_t begin) {
    std::optional<uint32_t> number;
    for (; Peek() >= '0' && Peek() <= '9'; ++at_) {
      number = number.value_or(0) * 10 + static_cast<uint32_t>(Peek() - '0');
      if (*number > kMostCounted) FailFrom(begin, "a quantifier above " + std::to_string(kMostCounted));
    }
    return number;
  }

  Ranges Class() {
    const bool negated = Take('^');
    Ranges all;
    while (!Take(']')) {
      if (AtEnd()) Fail("a class without ']'");
      bool is_class = false;
      Ranges low = Character(&is_class);
      if (!is_class && Peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const Ranges high = Character(&is_class);
        if (is_class || high[0].low < low[0].low) Fail("such a range");
        low[0].high = high[0].low;
      }
      all.insert(all.end(), low.begin(), low.end());
    }
    if (negated) all = Without({{0, kMostCode}}, all);
    if (Without(all, {{0xD800, 0xDFFF}}).empty()) Fail("an empty class");
    return Joined(all);
  }

  // A character, or a class such as \d.
  Ranges Character(bool* is_class) {
    const size_t begin = at_;
    if (!Take('\\')) return OneCode(NextCode());
    if (AtEnd()) FailFrom(begin, "'\\' at the end");
    const char c = Peek();
    const Ranges digits = {{'0', '9'}}, word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    const Ranges space = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    const Ranges every = {{0, kMostCode}};
    ++at_;
    *is_class = std::strchr("dDwWsS", c) != nullptr && c != '\0';
    switch (c) {
      case 'd':
        return digits;
      case 'D':
        return Without(every, digits);
      case 'w':
        return word;
      case 'W':
        return Without(every, word);
      case 's':
        return space;
      case 'S':
        return Without(every, space);
      case 'n':
        return OneCode('\n');
      case 'r':
        return OneCode('\r');
      case 't':
        return OneCode('\t');
      case 'f':
        return OneCode('\f');
      case 'v':
        return OneCode('\v');
      case 'x':
        return OneCode(HexCode(2));
      case 'u':
        return OneCode(HexCode(4));
      default:
        break;
    }
    if (std::strchr("^$\\.*+?()[]{}|/-", c) == nullptr || c == '\0') FailFrom(begin, std::string("'\\") + c + "'");
    return OneCode(static_cast<uint32_t>(c));
  }

  static Ranges OneCode(uint32_t code) { return {{code, code}}; }

  uint32_t HexCode(size_t digits) {
    const std::string hex = text_.substr(std::min(at_, text_.size()), digits);
    if (hex.size() != digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) Fail("such an escape");
    at_ += digits;
    const auto code = static_cast<uint32_t>(std::stoul(hex, nullptr, 16));
    if (code >= 0xD800 && code <= 0xDFFF) Fail("half of a pair of surrogates");
    return code;
  }

  // Of UTF-8, as a parser of JSON gives it.
  uint32_t NextCode() {
    const auto lead = static_cast<unsigned char>(text_[at_++]);
    const int more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t code = more == 0 ? lead : lead & (0x3Fu >> more);
    for (int i = 0; i < more && !AtEnd(); ++i) code = code << 6 | (static_cast<unsigned char>(text_[at_++]) & 0x3Fu);
    return code;
  }

  std::string text_;
  const std::string where_;
  size_t at_ = 0;
  bool alternatives_ = false;  // outside of all groups
};

}  // namespace

std::string PatternRule(const std::string& pattern, const std::string& at) { return PatternReader(pattern, at).Read(); }

}  // namespace tarn::tools
