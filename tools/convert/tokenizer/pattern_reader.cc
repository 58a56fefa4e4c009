#include "tools/convert/tokenizer/pattern_reader.h"

#include <utility>

#include "tools/convert/tokenizer/pattern_tree.h"
#include "tools/convert/tokenizer/utf8_codes.h"

namespace tarn::convert {
namespace {

constexpr uint32_t kMaxDepth = 32;  // of classes inside classes
constexpr uint32_t kMaxNumber = 100'000;

bool IsDigit(uint32_t c) { return c >= '0' && c <= '9'; }

std::optional<uint32_t> HexDigit(uint32_t c) {
  if (IsDigit(c)) return c - '0';
  const uint32_t lower = c | 0x20;
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return std::nullopt;
}

const CodeSet& HexDigits() {
  static const CodeSet set = CodeSet('0', '9').Union(CodeSet('A', 'F')).Union(CodeSet('a', 'f'));
  return set;
}

// Outside of [...], Oniguruma's \w takes the digits and fractions of Latin-1, which are no decimal digits: superscripts 1 to 3,
// one quarter, one half, three quarters.
CodeSet Word(bool in_class) {
  if (in_class) return WordSet();
  return WordSet().Union(CodeSet(0xB2, 0xB3)).Union(CodeSet(0xB9, 0xB9)).Union(CodeSet(0xBC, 0xBE));
}

}  // namespace

PatternReader::PatternReader(std::string_view pattern, std::string where, UnicodeVersion version)
    : pattern_(pattern), where_(std::move(where)), version_(version) {
  for (size_t at = 0; at < pattern.size();) {
    uint32_t code = 0;
    const size_t length = DecodeUtf8(pattern.substr(at), &code);
    if (length == 0) FailInPattern(pattern, at, where_, "expected UTF-8");
    codes_.push_back(code);
    bytes_.push_back(at);
    at += length;
  }
}

void PatternReader::FailAt(size_t position, const std::string& message) const {
  FailInPattern(pattern_, position < bytes_.size() ? bytes_[position] : pattern_.size(), where_, message);
}

bool PatternReader::TakeIf(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (next_ + i >= codes_.size() || codes_[next_ + i] != static_cast<uint8_t>(text[i])) return false;
  }
  next_ += text.size();
  return true;
}

std::optional<uint32_t> PatternReader::TakeNumber() {
  if (!IsDigit(Peek())) return std::nullopt;
  const size_t begin = next_;
  uint32_t number = 0;
  while (IsDigit(Peek())) {
    number = number * 10 + (Take() - '0');
    if (number >= kMaxNumber) FailAt(begin, "expected a number below 100000");
  }
  return number;
}

CodeSet PatternReader::TakeProperty(bool negated, size_t begin) {
  if (!TakeIf("{")) FailAt(begin, "expected '{' behind \\p");
  if (TakeIf("^")) negated = !negated;
  std::string name;
  while (!AtEnd() && Peek() != '}') {
    const uint32_t c = Take();
    name += c < 0x80 ? static_cast<char>(c) : '?';
  }
  if (!TakeIf("}")) FailAt(begin, "expected '}' behind the name of a property");
  const std::optional<CodeSet> set = PropertySet(name, version_);
  if (!set) FailAt(begin, "the property '" + name + "' is not supported: expected a general category, a script, Alphabetic or Any");
  return negated ? set->Complement() : *set;
}

std::optional<CodeSet> PatternReader::TakeClassEscape(bool in_class) {
  const size_t begin = next_ - 1;
  const uint32_t c = Take();
  switch (c) {
    case 's':
      return PropertySet("space", version_);
    case 'S':
      return PropertySet("space", version_)->Complement();
    case 'd':
      return PropertySet("digit", version_);
    case 'D':
      return PropertySet("digit", version_)->Complement();
    case 'w':
      return Word(in_class);
    case 'W':
      return Word(in_class).Complement();
    case 'h':
      return HexDigits();
    case 'H':
      return HexDigits().Complement();
    case 'p':
      return TakeProperty(false, begin);
    case 'P':
      return TakeProperty(true, begin);
    default:
      next_ = begin + 1;
      return std::nullopt;
  }
}

uint32_t PatternReader::TakeHex(size_t digits, size_t begin) {
  uint32_t code = 0;
  size_t taken = 0;
  for (; taken < digits; ++taken) {
    const std::optional<uint32_t> digit = HexDigit(Peek());
    if (!digit) break;
    Take();
    code = code << 4 | *digit;
  }
  if (taken == 0 || code > kMaxCodePoint) FailAt(begin, "expected the hexadecimal digits of a character");
  return code;
}

uint32_t PatternReader::TakeCharacterEscape() {
  const size_t begin = next_ - 1;
  if (AtEnd()) FailAt(begin, "expected a character behind '\\'");
  const uint32_t c = Take();
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return 0x0B;
    case 'f':
      return '\f';
    case 'a':
      return 0x07;
    case 'e':
      return 0x1B;
    case 'u':
      return TakeHex(4, begin);
    case 'x':
      if (TakeIf("{")) {
        const uint32_t code = TakeHex(8, begin);
        if (!TakeIf("}")) FailAt(begin, "expected '}' behind \\x{...");
        return code;
      } else {
        const uint32_t code = TakeHex(2, begin);
        if (code > 0x7F) FailAt(begin, "a byte of UTF-8 is not supported: expected \\x{...}, a character");
        return code;
      }
    default:
      break;
  }
  const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 0x80;
  if (letter || IsDigit(c)) FailAt(begin, std::string("\\") + static_cast<char>(c) + " is not supported");
  return c;
}

CodeSet PatternReader::TakePosixBracket(size_t begin) {
  const bool negated = TakeIf("^");
  for (const std::string name : {"alpha", "alnum", "digit", "space", "word"}) {
    if (!TakeIf(name + ":]")) continue;
    const CodeSet set = name == "word" ? WordSet() : *PropertySet(name, version_);
    return negated ? set.Complement() : set;
  }
  FailAt(begin, "this bracket is not supported: expected alpha, alnum, digit, space or word between [: and :]");
}

// The character behind "a-".
uint32_t PatternReader::TakeRangeEnd(size_t begin) {
  if (!TakeIf("\\")) return Take();
  if (TakeClassEscape(true)) FailAt(begin, "a range ends with a class: expected a character");
  return TakeCharacterEscape();
}

void PatternReader::TakeClassItem(CodeSet* set, bool ignore_case) {
  const size_t begin = next_;
  if (TakeIf("[:")) {
    *set = set->Union(TakePosixBracket(begin));
    return;
  }
  if (TakeIf("[")) {
    *set = set->Union(TakeClass(ignore_case));
    return;
  }
  uint32_t first;
  if (TakeIf("\\")) {
    if (const std::optional<CodeSet> escape = TakeClassEscape(true)) {
      *set = set->Union(*escape);
      return;
    }
    first = TakeIf("b") ? 0x08u : TakeCharacterEscape();
  } else {
    first = Take();
  }
  uint32_t last = first;
  if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '[' && next_ + 1 < codes_.size()) {
    Take();
    last = TakeRangeEnd(begin);
    if (last < first) FailAt(begin, "a range of characters goes backwards");
  }
  *set = set->Union(CodeSet(first, last));
}

CodeSet PatternReader::TakeClass(bool ignore_case) {
  const size_t begin = next_ - 1;
  if (++depth_ > kMaxDepth) FailAt(begin, "classes lie inside classes more than 32 levels deep");
  const bool negated = TakeIf("^");
  CodeSet set, intersection(0, kMaxCodePoint);
  if (TakeIf("]")) set = CodeSet(']', ']');  // here it ends nothing
  while (!TakeIf("]")) {
    if (AtEnd()) FailAt(begin, "expected ']' at the end of a class");
    if (TakeIf("&&")) {
      intersection = intersection.Intersection(set);
      set = CodeSet();
      continue;
    }
    TakeClassItem(&set, ignore_case);
  }
  --depth_;
  set = intersection.Intersection(set);
  if (ignore_case) {
    for (const LongFold& fold : LongFolds()) {
      if (!negated && set.Contains(fold.code)) {
        FailAt(begin, "a class that ignores case has a character that is two in another case: not supported");
      }
    }
    set = CaseClosure(set);
  }
  return negated ? set.Complement() : set;
}

}  // namespace tarn::convert
