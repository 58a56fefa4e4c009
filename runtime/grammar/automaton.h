// A grammar as what a matcher follows: for each rule a deterministic automaton over bytes, with calls of other rules.
#ifndef TARN_RUNTIME_GRAMMAR_AUTOMATON_H_
#define TARN_RUNTIME_GRAMMAR_AUTOMATON_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/effort.h"

namespace tarn {

struct ByteEdge {
  uint8_t low, high;
  uint32_t to;
};

// A call reads a text that is not empty.
struct CallEdge {
  uint32_t start;  // a state
  uint32_t to;     // where it goes on; kTail: nothing follows in this rule, so that no place to return to need be kept
};

struct GrammarState {
  uint32_t first_edge, first_call;
  bool ends;  // the rule may end here
};

// Where the rules of a text begin. States of all rules are numbered together. From each of them a text leads to an end.
class Automaton {
 public:
  static constexpr uint32_t kTail = UINT32_MAX;

  explicit Automaton(const Allocator& allocator) : states_(allocator), edges_(allocator), calls_(allocator), rules_(allocator) {}

  // Errors: TARN_BAD_FORMAT (names line and column, or the rules that are left-recursive), TARN_UNSUPPORTED (more than `max_states`
  // states, more work than `*effort` allows), TARN_OUT_OF_MEMORY.
  Status Compile(Span<const char> text, uint32_t max_states, const Allocator& allocator, Effort* effort);

  uint32_t start() const { return start_; }
  bool takes_empty_text() const { return takes_empty_text_; }
  uint32_t state_count() const { return static_cast<uint32_t>(states_.size()) - 1; }
  // Rules that have states of their own; those of a rule begin where it starts, and end where the next one starts.
  uint32_t rule_count() const { return static_cast<uint32_t>(rules_.size()) - 1; }
  uint32_t StartOf(uint32_t rule) const { return rules_[rule]; }
  uint32_t RuleOf(uint32_t state) const {
    return static_cast<uint32_t>(std::upper_bound(rules_.begin(), rules_.end(), state) - rules_.begin()) - 1;
  }
  bool Ends(uint32_t state) const { return states_[state].ends; }
  // In ascending order; no two have a byte in common.
  Span<const ByteEdge> EdgesOf(uint32_t state) const {
    return {edges_.data() + states_[state].first_edge, states_[state + 1].first_edge - states_[state].first_edge};
  }
  Span<const CallEdge> CallsOf(uint32_t state) const {
    return {calls_.data() + states_[state].first_call, states_[state + 1].first_call - states_[state].first_call};
  }
  uint64_t bytes() const { return states_.bytes() + edges_.bytes() + calls_.bytes() + rules_.bytes(); }

 private:
  friend class RuleCompiler;

  Array<GrammarState> states_;  // and one behind the last
  Array<ByteEdge> edges_;
  Array<CallEdge> calls_;
  Array<uint32_t> rules_;  // first states, and one behind the last
  uint32_t start_ = 0;
  bool takes_empty_text_ = false;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_AUTOMATON_H_
