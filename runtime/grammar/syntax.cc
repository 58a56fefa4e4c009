#include "runtime/grammar/syntax.h"

#include <algorithm>
#include <cstring>

#include "core/visible.h"

namespace tarn {

RuleName Syntax::Name(uint32_t rule) const {
  RuleName name{};
  std::memcpy(name.text, text_.data() + rules_[rule].name, std::min<size_t>(rules_[rule].name_bytes, sizeof(name.text) - 1));
  return name;
}

// Columns are characters, counted from 1.
Status Syntax::At(size_t offset, const Status& error) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < offset && i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      ++line;
      column = 1;
    } else if ((static_cast<uint8_t>(text_[i]) & 0xC0) != 0x80) {
      ++column;
    }
  }
  return error.In("line %zu, column %zu", line, column);
}

namespace {

constexpr uint32_t kMostOperators = 8;  // behind one element

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Sorts ranges, joins those that touch, and returns how many are left.
size_t JoinRanges(Span<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) { return a.low < b.low; });
  size_t count = 0;
  for (const CodeRange& range : ranges) {
    if (count > 0 && range.low <= ranges[count - 1].high + 1) {
      ranges[count - 1].high = std::max(ranges[count - 1].high, range.high);
    } else {
      ranges[count++] = range;
    }
  }
  return count;
}

}  // namespace

// A recursive descent over the text, a function for each part of the notation.
class SyntaxReader {
 public:
  explicit SyntaxReader(Syntax* syntax) : syntax_(syntax), text_(syntax->text_) {}

  Status Read() {
    SkipSpace(true);
    while (at_ < text_.size()) TARN_RETURN_IF_ERROR(ReadRule());
    return Finish();
  }

 private:
  bool AtEnd() const { return at_ == text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Spaces and comments; also line ends, where one does not end a rule.
  void SkipSpace(bool lines) {
    while (!AtEnd()) {
      const char c = text_[at_];
      if (c == '#') {
        while (!AtEnd() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Status Expected(const char* what) const {
    if (AtEnd()) return syntax_->At(at_, Error(TARN_BAD_FORMAT, "expected %s, but the grammar ends", what));
    char found[5] = {};
    uint32_t code = 0;
    const size_t bytes = DecodeUtf8(text_.data() + at_, text_.size() - at_, &code);
    std::memcpy(found, text_.data() + at_, std::max<size_t>(bytes, 1));
    if (found[0] == '\n' || found[0] == '\r') return Fail("expected %s, found the end of the line", what);
    return syntax_->At(at_, Error(TARN_BAD_FORMAT, "expected %s, found '%s'", what, found));
  }
  Status Fail(const char* format, const char* what = "") const { return syntax_->At(at_, Error(TARN_BAD_FORMAT, format, what)); }

  Result<uint32_t> Add(const SyntaxNode& node) {
    TARN_GROW_OR_RETURN(syntax_->nodes_.Push(node));
    return static_cast<uint32_t>(syntax_->nodes_.size() - 1);
  }

  // The rule of the name that stands here.
  Result<uint32_t> ReadName() {
    const size_t begin = at_;
    while (IsNameByte(Peek())) ++at_;
    if (at_ == begin) return Expected("the name of a rule (letters, digits, - and _)");
    const Span<const char> name = text_.subspan(begin, at_ - begin);
    Array<uint32_t>& by_name = syntax_->by_name_;
    const uint32_t* const found =
        std::partition_point(by_name.begin(), by_name.end(), [&](uint32_t rule) { return Compare(rule, name) < 0; });
    if (found != by_name.end() && Compare(*found, name) == 0) return *found;
    const auto place = static_cast<size_t>(found - by_name.begin());
    const auto index = static_cast<uint32_t>(syntax_->rules_.size());
    if (index == kMaxGrammarRules) {
      return syntax_->At(begin, Error(TARN_UNSUPPORTED, "more than %u rules", static_cast<unsigned>(kMaxGrammarRules)));
    }
    const auto where = static_cast<uint32_t>(begin);
    TARN_GROW_OR_RETURN(syntax_->rules_.Push({where, static_cast<uint32_t>(name.size()), kNoNode, where}));
    TARN_GROW_OR_RETURN(by_name.Push(index));
    std::rotate(by_name.begin() + place, by_name.end() - 1, by_name.end());
    return index;
  }

  // The order of names: shorter ones first.
  int Compare(uint32_t rule, Span<const char> name) const {
    const SyntaxRule& known = syntax_->rules_[rule];
    if (known.name_bytes != name.size()) return known.name_bytes < name.size() ? -1 : 1;
    return std::memcmp(text_.data() + known.name, name.data(), name.size());
  }

  Status ReadRule() {
    const size_t begin = at_;
    TARN_ASSIGN_OR_RETURN(const uint32_t rule, ReadName());
    SkipSpace(false);
    if (!(Peek() == ':' && Peek(1) == ':' && Peek(2) == '=')) return Expected("'::=' behind the name of a rule");
    at_ += 3;
    if (syntax_->rules_[rule].node != kNoNode) {
      at_ = begin;
      return Fail("rule '%s' is defined twice", syntax_->Name(rule).text);
    }
    SkipSpace(true);
    TARN_ASSIGN_OR_RETURN(const uint32_t node, ReadAlternatives(0));
    syntax_->rules_[rule].node = node;
    syntax_->rules_[rule].where = static_cast<uint32_t>(begin);
    if (!AtEnd() && Peek() != '\n' && Peek() != '\r') return Expected("an element, '|' or the end of the line");
    SkipSpace(true);
    return Ok();
  }

  // `nesting`: how many groups are open.
  Result<uint32_t> ReadAlternatives(uint32_t nesting) {
    TARN_ASSIGN_OR_RETURN(const uint32_t first, ReadSequence(nesting));
    if (Peek() != '|') return first;
    uint32_t last = first;
    while (Take('|')) {
      SkipSpace(true);
      TARN_ASSIGN_OR_RETURN(const uint32_t next, ReadSequence(nesting));
      syntax_->nodes_[last].next = next;
      last = next;
    }
    return Add({NodeKind::kAlternatives, 0, 0, first, kNoNode});
  }

  Result<uint32_t> ReadSequence(uint32_t nesting) {
    uint32_t first = kNoNode, last = kNoNode;
    for (;;) {
      const char c = Peek();
      if (AtEnd() || c == '|' || c == ')' || c == '\n' || c == '\r') break;
      TARN_ASSIGN_OR_RETURN(uint32_t element, ReadElement(nesting));
      TARN_ASSIGN_OR_RETURN(element, ReadOperators(element, nesting));
      Append(element, &first, &last);
      SkipSpace(nesting > 0);
    }
    // Always a node of its own: an element that is a rule's or a group's tree has a place among its own siblings.
    return Add({NodeKind::kSequence, 0, 0, first, kNoNode});
  }

  void Append(uint32_t element, uint32_t* first, uint32_t* last) {
    (*last == kNoNode ? *first : syntax_->nodes_[*last].next) = element;
    *last = element;
  }

  Result<uint32_t> ReadElement(uint32_t nesting) {
    if (Take('"')) return ReadLiteral();
    if (Take('[')) return ReadClass();
    if (Take('.')) return AddClass(syntax_->ranges_.size(), true);
    if (Take('(')) {
      if (nesting == kMaxGrammarNesting) return Fail("more than 64 groups inside each other");
      SkipSpace(true);
      TARN_ASSIGN_OR_RETURN(const uint32_t group, ReadAlternatives(nesting + 1));
      if (!Take(')')) return Expected("an element, '|' or ')'");
      return group;
    }
    if (!IsNameByte(Peek())) return Expected("a rule, \"text\", [class], '.' or '('");
    TARN_ASSIGN_OR_RETURN(const uint32_t rule, ReadName());
    return Add({NodeKind::kRule, rule, 0, kNoNode, kNoNode});
  }

  // A text in quotes is a group of its characters: an operator behind it repeats all of it.
  Result<uint32_t> ReadLiteral() {
    uint32_t first = kNoNode, last = kNoNode;
    while (!Take('"')) {
      if (AtEnd() || Peek() == '\n') return Expected("a closing '\"'");
      TARN_ASSIGN_OR_RETURN(const uint32_t code, ReadCharacter());
      const auto range = static_cast<uint32_t>(syntax_->ranges_.size());
      TARN_GROW_OR_RETURN(syntax_->ranges_.Push({code, code}));
      TARN_ASSIGN_OR_RETURN(const uint32_t node, Add({NodeKind::kClass, range, range + 1, kNoNode, kNoNode}));
      Append(node, &first, &last);
    }
    return Add({NodeKind::kSequence, 0, 0, first, kNoNode});
  }

  Result<uint32_t> ReadClass() {
    const bool negated = Take('^');
    const size_t begin = syntax_->ranges_.size();
    while (!Take(']')) {
      if (AtEnd() || Peek() == '\n') return Expected("']'");
      const size_t where = at_;
      TARN_ASSIGN_OR_RETURN(const uint32_t low, ReadCharacter());
      uint32_t high = low;
      if (Peek() == '-' && Peek(1) != ']') {
        ++at_;
        if (AtEnd()) return Expected("the end of a range");
        TARN_ASSIGN_OR_RETURN(high, ReadCharacter());
      }
      if (high < low) {
        at_ = where;
        return Fail("a range of characters ends before it begins");
      }
      TARN_GROW_OR_RETURN(syntax_->ranges_.Push({low, high}));
    }
    return AddClass(begin, negated);
  }

  // The class of the ranges from `begin` on, or of all characters but those.
  Result<uint32_t> AddClass(size_t begin, bool negated) {
    Array<CodeRange>& ranges = syntax_->ranges_;
    ranges.Truncate(begin + JoinRanges({ranges.data() + begin, ranges.size() - begin}));
    if (negated) {
      uint32_t low = 0;
      const size_t end = ranges.size();
      for (size_t i = begin; i < end; ++i) {
        const CodeRange range = ranges[i];
        if (range.low > low) TARN_GROW_OR_RETURN(ranges.Push({low, range.low - 1}));
        low = range.high + 1;
      }
      if (low <= kMaxCodePoint) TARN_GROW_OR_RETURN(ranges.Push({low, kMaxCodePoint}));
      std::move(ranges.begin() + end, ranges.end(), ranges.begin() + begin);
      ranges.Truncate(ranges.size() - (end - begin));
    }
    bool empty = true;  // surrogates are no characters of a text
    for (size_t i = begin; i < ranges.size(); ++i) empty = empty && ranges[i].low >= 0xD800 && ranges[i].high <= 0xDFFF;
    if (empty) return Fail("a class without characters");
    return Add({NodeKind::kClass, static_cast<uint32_t>(begin), static_cast<uint32_t>(ranges.size()), kNoNode, kNoNode});
  }

  // One character of a text in quotes or of a class.
  Result<uint32_t> ReadCharacter() {
    if (Peek() == '\\' && at_ + 1 < text_.size()) return ReadEscape();
    uint32_t code = 0;
    const size_t bytes = DecodeUtf8(text_.data() + at_, text_.size() - at_, &code);
    if (bytes == 0) return Fail("the grammar is not UTF-8");
    at_ += bytes;
    return code;
  }

  Result<uint32_t> ReadEscape() {
    const char c = Peek(1);
    constexpr char kEscapes[][2] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'}, {'"', '"'}, {'[', '['}, {']', ']'}};
    for (const auto& escape : kEscapes) {
      if (c != escape[0]) continue;
      at_ += 2;
      return static_cast<uint32_t>(escape[1]);
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) return Fail("an unknown escape, expected one of \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH");
    uint64_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int digit = HexDigit(Peek(2 + i));
      if (digit < 0) return Fail("an escape with too few hexadecimal digits, expected \\xHH, \\uHHHH or \\UHHHHHHHH");
      code = code << 4 | static_cast<uint64_t>(digit);
    }
    if (code > kMaxCodePoint || (code >= 0xD800 && code <= 0xDFFF)) return Fail("an escape that is no character of Unicode");
    at_ += 2 + digits;
    return static_cast<uint32_t>(code);
  }

  // * + ? {m} {m,} {m,n} behind an element.
  Result<uint32_t> ReadOperators(uint32_t element, uint32_t nesting) {
    for (uint32_t count = 0;; ++count) {
      SkipSpace(nesting > 0);
      uint32_t least = 0, most = kNoLimit;
      if (Take('+')) {
        least = 1;
      } else if (Take('?')) {
        most = 1;
      } else if (Take('{')) {
        TARN_RETURN_IF_ERROR(ReadCounts(&least, &most));
      } else if (!Take('*')) {
        return element;
      }
      if (count == kMostOperators) return Fail("more than 8 repetitions of one element");
      TARN_ASSIGN_OR_RETURN(element, Add({NodeKind::kRepeat, least, most, element, kNoNode}));
    }
  }

  Status ReadCounts(uint32_t* least, uint32_t* most) {
    TARN_RETURN_IF_ERROR(ReadCount(least));
    *most = *least;
    if (Take(',')) {
      SkipSpace(false);
      *most = kNoLimit;
      if (Peek() != '}') TARN_RETURN_IF_ERROR(ReadCount(most));
    }
    if (!Take('}')) return Expected("',' or '}'");
    if (*most < *least) return Fail("a repetition {m,n} with n below m");
    return Ok();
  }

  Status ReadCount(uint32_t* count) {
    constexpr uint32_t kMost = 1u << 20;
    SkipSpace(false);
    const size_t begin = at_;
    *count = 0;
    for (; Peek() >= '0' && Peek() <= '9'; ++at_) {
      *count = *count * 10 + static_cast<uint32_t>(Peek() - '0');
      if (*count > kMost) return Fail("a number of repetitions above 1048576");
    }
    if (at_ == begin) return Expected("a number of repetitions");
    SkipSpace(false);
    return Ok();
  }

  Status Finish() {
    for (uint32_t i = 0; i < syntax_->rules_.size(); ++i) {
      const SyntaxRule& rule = syntax_->rules_[i];
      if (rule.node == kNoNode) {
        return syntax_->At(rule.where, Error(TARN_BAD_FORMAT, "rule '%s' is not defined", syntax_->Name(i).text));
      }
      if (rule.name_bytes == 4 && std::memcmp(text_.data() + rule.name, "root", 4) == 0) {
        syntax_->root_ = i;
        found_root_ = true;
      }
    }
    if (found_root_) return Ok();
    return Error(TARN_BAD_FORMAT, "the grammar has no rule 'root', with which a text begins: root ::= ...");
  }

  Syntax* syntax_;
  Span<const char> text_;
  size_t at_ = 0;
  bool found_root_ = false;
};

Status Syntax::Parse() {
  if (text_.size() > kMaxGrammarBytes) {
    return Error(TARN_UNSUPPORTED, "the grammar has %zu bytes, at most %zu expected", text_.size(), kMaxGrammarBytes);
  }
  // A byte-order mark, which editors write, is no part of the rules.
  constexpr char kMark[] = {'\xEF', '\xBB', '\xBF'};
  if (text_.size() >= sizeof(kMark) && std::memcmp(text_.data(), kMark, sizeof(kMark)) == 0) {
    text_ = text_.subspan(sizeof(kMark), text_.size() - sizeof(kMark));
  }
  return SyntaxReader(this).Read();
}

}  // namespace tarn
