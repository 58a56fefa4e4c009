// Sets of states of an Nfa, each numbered once: the states of a deterministic automaton.
#ifndef TARN_RUNTIME_GRAMMAR_SUBSETS_H_
#define TARN_RUNTIME_GRAMMAR_SUBSETS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/nfa.h"

namespace tarn {

class Subsets {
 public:
  Subsets(const Nfa& nfa, const Allocator& allocator)
      : nfa_(nfa),
        ends_(allocator),
        items_(allocator),
        buckets_(allocator),
        next_(allocator),
        closure_(allocator),
        seen_(allocator),
        matters_(allocator) {}

  // Forgets the sets of the rule before.
  Status Begin() {
    ends_.Clear();
    items_.Clear();
    next_.Clear();
    buckets_.Clear();
    seen_.Clear();
    stamp_ = 0;
    TARN_GROW_OR_RETURN(seen_.Resize(nfa_.state_count()));
    TARN_GROW_OR_RETURN(buckets_.Resize(kBuckets));
    std::fill(buckets_.begin(), buckets_.end(), UINT32_MAX);
    matters_.Clear();
    TARN_GROW_OR_RETURN(matters_.Resize(nfa_.state_count()));
    for (uint32_t state = 0; state < nfa_.state_count(); ++state) {
      matters_[state] = state <= Nfa::kFinal ? 1 : 0;
      for (const NfaEdge& edge : nfa_.EdgesOf(state)) matters_[state] |= edge.kind != NfaEdge::Kind::kEmpty ? 1 : 0;
    }
    return Ok();
  }

  size_t size() const { return ends_.size(); }
  Span<const uint32_t> Of(size_t set) const {
    const uint32_t begin = set == 0 ? 0 : ends_[set - 1];
    return {items_.data() + begin, ends_[set] - begin};
  }

  // The number of the set that has `states` and all that empty edges lead to from them. `*work` grows by the edges that were looked
  // at.
  Result<uint32_t> Find(Span<const uint32_t> states, uint64_t* work) {
    TARN_RETURN_IF_ERROR(Close(states, work));
    size_t kept = 0;
    for (const uint32_t state : closure_) {
      if (matters_[state] != 0) closure_[kept++] = state;
    }
    closure_.Truncate(kept);
    std::sort(closure_.begin(), closure_.end());
    uint64_t hash = 14695981039346656037u;
    for (const uint32_t state : closure_) hash = (hash ^ state) * 1099511628211u;
    uint32_t* bucket = &buckets_[static_cast<size_t>((hash ^ hash >> 32) % kBuckets)];
    for (uint32_t set = *bucket; set != UINT32_MAX; set = next_[set]) {
      const Span<const uint32_t> known = Of(set);
      if (known.size() == kept && std::equal(known.begin(), known.end(), closure_.begin())) return set;
    }
    for (const uint32_t state : closure_) TARN_GROW_OR_RETURN(items_.Push(state));
    TARN_GROW_OR_RETURN(ends_.Push(static_cast<uint32_t>(items_.size())));
    TARN_GROW_OR_RETURN(next_.Push(*bucket));
    return *bucket = static_cast<uint32_t>(ends_.size() - 1);
  }

 private:
  static constexpr size_t kBuckets = 4096;

  Status Close(Span<const uint32_t> states, uint64_t* work) {
    ++stamp_;
    closure_.Clear();
    for (const uint32_t state : states) TARN_RETURN_IF_ERROR(Visit(state));
    for (size_t i = 0; i < closure_.size(); ++i) {
      const Span<const NfaEdge> edges = nfa_.EdgesOf(closure_[i]);
      *work += edges.size() + 1;
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
  Array<uint32_t> ends_, items_;    // of all sets
  Array<uint32_t> buckets_, next_;  // sets, by hash
  Array<uint32_t> closure_;         // the set that is being made
  Array<uint32_t> seen_;            // [states]: the last closure that has it
  Array<uint8_t> matters_;          // [states]: the first and last one, and those with an edge over something, tell sets apart
  uint32_t stamp_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_SUBSETS_H_
