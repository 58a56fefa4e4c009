// A grammar as its text says it: rules as trees. docs/grammars.md has the notation.
#ifndef TARN_RUNTIME_GRAMMAR_SYNTAX_H_
#define TARN_RUNTIME_GRAMMAR_SYNTAX_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"

namespace tarn {

constexpr size_t kMaxGrammarBytes = size_t{1} << 24;
constexpr uint32_t kMaxGrammarRules = 1u << 13;
constexpr uint32_t kMaxGrammarNesting = 64;  // of groups
constexpr uint32_t kNoLimit = UINT32_MAX;    // of repetitions
constexpr uint32_t kNoNode = UINT32_MAX;
constexpr uint32_t kMaxCodePoint = 0x10FFFF;

struct CodeRange {
  uint32_t low, high;  // both belong to it
};

enum class NodeKind : uint8_t {
  kClass,         // one character of ranges [first, last)
  kRule,          // what rule `first` derives
  kSequence,      // the children one after another; without any it is the empty text
  kAlternatives,  // one of the children
  kRepeat,        // the child at least `first` times and at most `last` times
};

struct SyntaxNode {
  NodeKind kind;
  uint32_t first, last;
  uint32_t child;  // the first one, or kNoNode
  uint32_t next;   // sibling, or kNoNode
};

struct SyntaxRule {
  uint32_t name, name_bytes;  // in the text
  uint32_t node;              // kNoNode: used, and not defined yet
  uint32_t where;             // in the text: its definition, or its first use
};

// For messages; long ones are cut.
struct RuleName {
  char text[48];
};

class Syntax {
 public:
  // `text` must stay as it is while this lives.
  Syntax(const Allocator& allocator, Span<const char> text)
      : text_(text), nodes_(allocator), ranges_(allocator), rules_(allocator), by_name_(allocator), root_(0) {}

  // Errors: TARN_BAD_FORMAT (names line and column), TARN_OUT_OF_MEMORY.
  Status Parse();

  size_t node_count() const { return nodes_.size(); }
  size_t rule_count() const { return rules_.size(); }
  uint32_t root() const { return root_; }  // a rule
  const SyntaxRule& rule(size_t i) const { return rules_[i]; }
  const SyntaxNode& node(uint32_t i) const { return nodes_[i]; }
  const CodeRange& range(size_t i) const { return ranges_[i]; }
  Span<const char> text() const { return text_; }
  RuleName Name(uint32_t rule) const;

  // `error` with its place in the text before it: "line 2, column 5: ".
  Status At(size_t offset, const Status& error) const;

 private:
  friend class SyntaxReader;

  Span<const char> text_;
  Array<SyntaxNode> nodes_;
  Array<CodeRange> ranges_;
  Array<SyntaxRule> rules_;
  Array<uint32_t> by_name_;  // rules in the order of their names: no choice of names makes a search long
  uint32_t root_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_SYNTAX_H_
