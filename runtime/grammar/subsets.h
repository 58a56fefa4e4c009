// Sets of states of an Nfa, each numbered once: the states of a deterministic automaton.
#ifndef TARN_RUNTIME_GRAMMAR_SUBSETS_H_
#define TARN_RUNTIME_GRAMMAR_SUBSETS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/effort.h"
#include "runtime/grammar/nfa.h"
#include "runtime/grammar/shared_lists.h"

namespace tarn {

class Subsets {
 public:
  Subsets(const Nfa& nfa, const Allocator& allocator, Effort* effort)
      : nfa_(nfa), effort_(*effort), sets_(allocator), closure_(allocator), seen_(allocator), matters_(allocator) {}

  // Forgets the sets of the rule before.
  Status Begin() {
    TARN_RETURN_IF_ERROR(sets_.Begin());
    seen_.Clear();
    stamp_ = 0;
    TARN_GROW_OR_RETURN(seen_.Resize(nfa_.state_count()));
    matters_.Clear();
    TARN_GROW_OR_RETURN(matters_.Resize(nfa_.state_count()));
    for (uint32_t state = 0; state < nfa_.state_count(); ++state) {
      matters_[state] = state <= Nfa::kFinal ? 1 : 0;
      for (const NfaEdge& edge : nfa_.EdgesOf(state)) matters_[state] |= edge.kind != NfaEdge::Kind::kEmpty ? 1 : 0;
    }
    return Ok();
  }

  size_t size() const { return sets_.size(); }
  Span<const uint32_t> Of(size_t set) const { return sets_.Of(static_cast<uint32_t>(set)); }

  // The number of the set that has `states` and all that empty edges lead to from them. Errors: TARN_UNSUPPORTED (too much work),
  // TARN_OUT_OF_MEMORY.
  Result<uint32_t> Find(Span<const uint32_t> states) {
    TARN_RETURN_IF_ERROR(Close(states));
    Array<uint32_t>& set = sets_.elements();
    const size_t begin = set.size();
    for (const uint32_t state : closure_) {
      if (matters_[state] != 0) TARN_GROW_OR_RETURN(set.Push(state));
    }
    std::sort(set.begin() + begin, set.end());
    return sets_.Keep(begin);
  }

 private:
  Status Close(Span<const uint32_t> states) {
    ++stamp_;
    closure_.Clear();
    for (const uint32_t state : states) TARN_RETURN_IF_ERROR(Visit(state));
    for (size_t i = 0; i < closure_.size(); ++i) {
      const Span<const NfaEdge> edges = nfa_.EdgesOf(closure_[i]);
      if (!effort_.Spend(edges.size() + 1)) return effort_.LimitError();
      for (const NfaEdge& edge : edges) {
        if (edge.kind == NfaEdge::Kind::kEmpty) TARN_RETURN_IF_ERROR(Visit(edge.to));
      }
    }
    return Ok();
  }

  Status Visit(uint32_t state) {
    if (seen_[state] == stamp_) return Ok();
    seen_[state] = stamp_;
    TARN_GROW_OR_RETURN(closure_.Push(state));
    return Ok();
  }

  const Nfa& nfa_;
  Effort& effort_;
  SharedLists<uint32_t> sets_;
  Array<uint32_t> closure_;  // the set that is being made
  Array<uint32_t> seen_;     // [states]: the last closure that has it
  Array<uint8_t> matters_;   // [states]: the first and last one, and those with an edge over something, tell sets apart
  uint32_t stamp_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_SUBSETS_H_
