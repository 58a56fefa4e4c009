// From the tree of a pattern to a deterministic automaton, by way of threads: the "Pike" reading of a regular expression.
#ifndef TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_AUTOMATON_H_
#define TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_AUTOMATON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/tokenizer/pattern_tree.h"
#include "tools/convert/tokenizer/unicode.h"

namespace tarn::convert {

// What a thread does next. Each instruction leads to instructions by their numbers.
struct PatternStep {
  enum class Kind : uint8_t {
    kSet,    // reads a character of sets[set], then `next`
    kSplit,  // `next`; if that does not lead to a match, `other`
    kAhead,  // `next` if the next character is in sets[set], or the text ends and `at_end`
    kMatch,
  };
  Kind kind;
  uint32_t set = 0;
  uint32_t next = 0;
  uint32_t other = 0;
  bool at_end = false;
};

struct PatternProgram {
  std::vector<PatternStep> steps;
  std::vector<CodeSet> sets;  // without repetition
  uint32_t start = 0;
};

// Errors: the program is too large; the message does not name the pattern.
PatternProgram CompileSteps(const PatternNode& tree);

// Code points that no set of a program tells apart are one class. Class 0 is the end of the text.
struct CharacterClasses {
  struct Run {
    uint32_t first;  // to the next run's
    uint32_t of;     // the class
  };
  size_t count = 1;
  std::vector<Run> runs;
  std::vector<std::vector<bool>> has;  // [set][class]
};

// Errors: there are more classes than a byte numbers.
CharacterClasses Classify(const std::vector<CodeSet>& sets);

// As pattern_format.h says: state 0 is dead, state 1 the start.
struct PatternAutomaton {
  struct Edge {
    uint32_t next;
    bool matched;
    bool operator<(const Edge& other) const { return next != other.next ? next < other.next : matched < other.matched; }
    bool operator==(const Edge& other) const { return next == other.next && matched == other.matched; }
  };
  std::vector<std::vector<Edge>> states;  // [state][class]
};

// Errors: too many states.
PatternAutomaton Determine(const PatternProgram& program, const CharacterClasses& classes);

// The automaton with the fewest states, numbered from the start on, and `classes` with those joined that it treats alike.
PatternAutomaton Minimize(const PatternAutomaton& automaton, CharacterClasses* classes);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TOKENIZER_PATTERN_AUTOMATON_H_
