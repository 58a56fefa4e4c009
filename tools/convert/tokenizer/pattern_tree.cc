#include "tools/convert/tokenizer/pattern_tree.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tools/common/printable.h"
#include "tools/convert/json/error.h"
#include "tools/convert/tokenizer/pattern_reader.h"

namespace tarn::convert {
namespace {

using Kind = PatternNode::Kind;

constexpr uint32_t kMaxGroups = 64;  // one inside the other
constexpr uint32_t kMaxRepeat = 1000;
constexpr uint32_t kMaxRepeats = 64;  // of one atom: each is a level of the tree, which is read by recursion

struct Options {
  bool ignore_case = false;
  bool dot_is_any = false;
};

PatternNode SetNode(CodeSet set) {
  PatternNode node;
  node.kind = Kind::kSet;
  node.set = std::move(set);
  return node;
}

PatternNode AheadNode(CodeSet set, bool at_end) {
  PatternNode node;
  node.kind = Kind::kAhead;
  node.ahead = {std::move(set), at_end};
  return node;
}

// What a node asks of the next character alone; nullopt if it asks for more than one character or for none.
std::optional<Ahead> OneCharacter(const PatternNode& node) {
  if (node.kind == Kind::kSet) return Ahead{node.set, false};
  if (node.kind == Kind::kAhead) return node.ahead;
  if (node.kind == Kind::kSequence && node.children.size() == 1) return OneCharacter(node.children[0]);
  if (node.kind != Kind::kAlternate) return std::nullopt;
  Ahead all = {CodeSet(), false};
  for (const PatternNode& child : node.children) {
    const std::optional<Ahead> one = OneCharacter(child);
    if (!one) return std::nullopt;
    all = {all.set.Union(one->set), all.at_end || one->at_end};
  }
  return all;
}

bool MatchesEmpty(const PatternNode& node) {
  const auto& children = node.children;
  switch (node.kind) {
    case Kind::kSet:
      return false;
    case Kind::kAhead:
      return true;
    case Kind::kSequence:
      return std::all_of(children.begin(), children.end(), MatchesEmpty);
    case Kind::kAlternate:
      return std::any_of(children.begin(), children.end(), MatchesEmpty);
    case Kind::kRepeat:
      return node.min == 0 || MatchesEmpty(children[0]);
  }
  return true;
}

// Recursive descent. Each function takes what its name says from the reader.
class Parser {
 public:
  Parser(std::string_view pattern, const std::string& where, UnicodeVersion version) : reader_(pattern, where, version) {}

  PatternNode Pattern() {
    PatternNode node = Alternatives(Options());
    if (!reader_.AtEnd()) reader_.FailAt(reader_.position(), "')' closes nothing: write \\)");
    return node;
  }

 private:
  PatternNode Alternatives(Options options) {
    const size_t begin = reader_.position();
    if (++depth_ > kMaxGroups) reader_.FailAt(begin, "groups lie inside groups more than 64 levels deep");
    PatternNode node;
    node.kind = Kind::kAlternate;
    do {
      node.children.push_back(Sequence(options));
    } while (reader_.TakeIf("|"));
    --depth_;
    if (node.children.size() > 1) return node;
    PatternNode only = std::move(node.children[0]);
    return only;
  }

  PatternNode Sequence(const Options& options) {
    PatternNode node;
    letters_.clear();
    while (!reader_.AtEnd() && reader_.Peek() != '|' && reader_.Peek() != ')') {
      const size_t begin = reader_.position();
      PatternNode atom = Atom(options);
      node.children.push_back(Repeats(std::move(atom), begin));
    }
    return node;
  }

  PatternNode Atom(const Options& options) {
    const size_t begin = reader_.position();
    if (reader_.TakeIf("(")) {
      letters_.clear();
      PatternNode group = Group(options, begin);
      letters_.clear();
      return group;
    }
    if (reader_.TakeIf("[")) {
      letters_.clear();
      return SetNode(reader_.TakeClass(options.ignore_case));
    }
    if (reader_.TakeIf(".")) {
      letters_.clear();
      return SetNode(options.dot_is_any ? CodeSet(0, kMaxCodePoint) : CodeSet('\n', '\n').Complement());
    }
    if (reader_.TakeIf("$")) return AheadNode(CodeSet('\n', '\n'), true);
    if (reader_.TakeIf("\\z")) return AheadNode(CodeSet(), true);
    if (reader_.TakeIf("^")) reader_.FailAt(begin, "'^' is not supported: the automaton does not look back");
    if (reader_.TakeIf("\\")) {
      if (std::optional<CodeSet> set = reader_.TakeClassEscape(false)) {
        letters_.clear();
        return SetNode(std::move(*set));
      }
      return Letter(reader_.TakeCharacterEscape(), options, begin);
    }
    const uint32_t c = reader_.Take();
    if (c == '*' || c == '+' || c == '?') reader_.FailAt(begin, "a repeat of nothing");
    return Letter(c, options, begin);
  }

  // A literal character. Where case is ignored, "ss" would match U+00DF, too: the letters before it count.
  PatternNode Letter(uint32_t c, const Options& options, size_t begin) {
    if (!options.ignore_case) return SetNode(CodeSet(c, c));
    letters_.push_back(FoldCase(c));
    for (const LongFold& fold : LongFolds()) {
      const bool ends =
          letters_.size() >= fold.folded.size() && std::equal(fold.folded.rbegin(), fold.folded.rend(), letters_.rbegin());
      if (ends || fold.code == c) {
        reader_.FailAt(begin, "where case is ignored, letters that are one character in another case are not supported");
      }
    }
    return SetNode(CaseClosure(CodeSet(c, c)));
  }

  PatternNode Group(Options options, size_t begin) {
    if (!reader_.TakeIf("?")) return Close(Alternatives(options), begin);
    if (reader_.TakeIf(":")) return Close(Alternatives(options), begin);
    if (reader_.TakeIf("=")) return LookAhead(options, false, begin);
    if (reader_.TakeIf("!")) return LookAhead(options, true, begin);
    if (reader_.TakeIf("#")) return Comment(begin);
    if (reader_.TakeIf("<=") || reader_.TakeIf("<!")) reader_.FailAt(begin, "lookbehind is not supported");
    if (reader_.TakeIf(">")) reader_.FailAt(begin, "atomic groups are not supported");
    if (reader_.TakeIf("<")) {
      while (!reader_.AtEnd() && reader_.Peek() != '>') reader_.Take();
      if (!reader_.TakeIf(">")) reader_.FailAt(begin, "expected '>' behind the name of a group");
      return Close(Alternatives(options), begin);
    }
    return OptionGroup(options, begin);
  }

  // (?im-im:...), and (?i) where it begins the group that it is for.
  PatternNode OptionGroup(Options options, size_t begin) {
    bool value = true;
    while (!reader_.AtEnd() && reader_.Peek() != ':' && reader_.Peek() != ')') {
      switch (reader_.Take()) {
        case '-':
          value = false;
          break;
        case 'i':
          options.ignore_case = value;
          break;
        case 'm':
          options.dot_is_any = value;
          break;
        default:
          reader_.FailAt(begin, "this kind of group is not supported: expected (?:, (?i:, (?m:, (?= or (?!");
      }
    }
    if (reader_.TakeIf(":")) return Close(Alternatives(options), begin);
    if (begin != 0) reader_.FailAt(begin, "an option in the middle is not supported: write (?i:...)");
    if (!reader_.TakeIf(")")) reader_.FailAt(begin, "expected ')'");
    return Alternatives(options);
  }

  PatternNode Comment(size_t begin) {
    while (!reader_.AtEnd() && reader_.Peek() != ')') reader_.Take();
    return Close(PatternNode(), begin);
  }

  PatternNode LookAhead(const Options& options, bool negated, size_t begin) {
    const PatternNode inner = Close(Alternatives(options), begin);
    const std::optional<Ahead> ahead = OneCharacter(inner);
    if (!ahead) reader_.FailAt(begin, "look-ahead of other than one character is not supported");
    return negated ? AheadNode(ahead->set.Complement(), !ahead->at_end) : AheadNode(ahead->set, ahead->at_end);
  }

  PatternNode Close(PatternNode node, size_t begin) {
    if (!reader_.TakeIf(")")) reader_.FailAt(begin, "expected ')' at the end of a group");
    return node;
  }

  PatternNode Repeats(PatternNode atom, size_t begin) {
    for (uint32_t count = 0;; ++count) {
      const size_t at = reader_.position();
      uint32_t min = 0, max = PatternNode::kUnbounded;
      bool is_interval = false;
      if (reader_.TakeIf("?")) {
        max = 1;
      } else if (reader_.TakeIf("+")) {
        min = 1;
      } else if (!reader_.TakeIf("*")) {
        if (!Interval(&min, &max)) return atom;
        is_interval = true;
      }
      if (count == kMaxRepeats) reader_.FailAt(at, "one repeat more behind 64 others, at most 64 in a row expected");
      letters_.clear();
      const bool lazy = reader_.TakeIf("?");
      if (lazy && is_interval && min == max) reader_.FailAt(at, "{n}? is not supported: write {n} or {0,n}");
      if (!lazy && !is_interval && reader_.TakeIf("+")) reader_.FailAt(at, "possessive repeats are not supported");
      if (max > 1 && MatchesEmpty(atom)) reader_.FailAt(begin, "a repeat of what can be empty is not supported");
      PatternNode repeat;
      repeat.kind = Kind::kRepeat;
      repeat.min = min;
      repeat.max = max;
      repeat.greedy = !lazy;
      repeat.children.push_back(std::move(atom));
      atom = std::move(repeat);
    }
  }

  // {n}, {n,}, {,m}, {n,m}; else nothing is taken: '{' is a character like others.
  bool Interval(uint32_t* min, uint32_t* max) {
    const size_t begin = reader_.position();
    if (!reader_.TakeIf("{")) return false;
    const std::optional<uint32_t> low = reader_.TakeNumber();
    const bool comma = reader_.TakeIf(",");
    const std::optional<uint32_t> high = comma ? reader_.TakeNumber() : low;
    if ((!low && !high) || !reader_.TakeIf("}")) {
      reader_.SeekBack(begin);
      return false;
    }
    *min = low.value_or(0);
    *max = high.value_or(PatternNode::kUnbounded);
    if (*min > kMaxRepeat || (high && *high > kMaxRepeat)) reader_.FailAt(begin, "a repeat of more than 1000 is not supported");
    if (*max < *min) reader_.FailAt(begin, "a repeat whose largest count is below its smallest is not supported");
    return true;
  }

  PatternReader reader_;
  std::vector<uint32_t> letters_;  // literal characters that directly precede, folded, where case is ignored
  uint32_t depth_ = 0;
};

}  // namespace

void FailInPattern(std::string_view pattern, size_t at, const std::string& where, const std::string& message) {
  constexpr size_t kShown = 60;
  const auto part = [](std::string_view text) { return tools::Printable(std::string(text)); };
  const std::string_view before = pattern.substr(0, at), after = pattern.substr(at);
  const std::string left = before.size() > kShown ? "..." + part(before.substr(before.size() - kShown)) : part(before);
  const std::string right = after.size() > kShown ? part(after.substr(0, kShown)) + "..." : part(after);
  Fail(where, ": ", message, "; in the pattern ", left, " >>> ", right);
}

PatternNode ParsePattern(std::string_view pattern, const std::string& where, UnicodeVersion version) {
  return Parser(pattern, where, version).Pattern();
}

}  // namespace tarn::convert
