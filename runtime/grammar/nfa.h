// One rule of a grammar as a nondeterministic automaton over bytes and calls of other rules (Thompson's construction).
#ifndef TARN_RUNTIME_GRAMMAR_NFA_H_
#define TARN_RUNTIME_GRAMMAR_NFA_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/effort.h"
#include "runtime/grammar/rules.h"
#include "runtime/grammar/syntax.h"

namespace tarn {

struct NfaEdge {
  enum class Kind : uint8_t { kEmpty, kBytes, kCall };
  uint32_t from, to;
  uint32_t rule;  // of a call: it derives a text that is not empty
  Kind kind;
  uint8_t low, high;  // of bytes
};

class Nfa {
 public:
  static constexpr uint32_t kStart = 0, kFinal = 1;  // no edge leads to kStart, none leaves kFinal

  Nfa(const Syntax& syntax, Span<const RuleFacts> facts, uint32_t max_states, const Allocator& allocator, Effort* effort)
      : syntax_(syntax),
        facts_(facts),
        max_states_(max_states),
        effort_(*effort),
        edges_(allocator),
        first_(allocator),
        sorted_(allocator),
        shared_(allocator) {}

  // Takes the place of the rule before. Errors: TARN_UNSUPPORTED (too many states, too much work), TARN_OUT_OF_MEMORY.
  Status Build(uint32_t rule);

  uint32_t state_count() const { return state_count_; }
  Span<const NfaEdge> EdgesOf(uint32_t state) const { return {sorted_.data() + first_[state], first_[state + 1] - first_[state]}; }

 private:
  // The end of characters of several bytes: `low` to `high`, and then the state `to`.
  struct SharedEnd {
    uint8_t low, high;
    uint32_t to, state;
  };

  Result<uint32_t> NewState();
  Status AddEmpty(uint32_t from, uint32_t to);
  Status Add(uint32_t node, uint32_t from, uint32_t to);
  Status AddClass(const SyntaxNode& node, uint32_t from, uint32_t to);
  Status AddRule(uint32_t rule, uint32_t from, uint32_t to);
  Status AddSequence(const SyntaxNode& node, uint32_t from, uint32_t to);
  Status AddRepeat(const SyntaxNode& node, uint32_t from, uint32_t to);
  Status SortEdges();

  const Syntax& syntax_;
  Span<const RuleFacts> facts_;
  uint32_t max_states_;
  Effort& effort_;
  uint32_t state_count_ = 0;
  uint64_t steps_ = 0;  // parts of the grammar that were added: a repetition of nothing makes no states
  Array<NfaEdge> edges_;
  Array<uint32_t> first_;  // [states + 1]: the first edge of each in sorted_
  Array<NfaEdge> sorted_;
  Array<SharedEnd> shared_;  // of the class that is being added
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_NFA_H_
