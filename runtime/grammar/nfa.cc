#include "runtime/grammar/nfa.h"

#include "runtime/grammar/utf8_ranges.h"

namespace tarn {

Status Nfa::Build(uint32_t rule) {
  edges_.Clear();
  state_count_ = 2;
  steps_ = 0;
  TARN_RETURN_IF_ERROR(Add(syntax_.rule(rule).node, kStart, kFinal));
  return SortEdges();
}

Result<uint32_t> Nfa::NewState() {
  if (state_count_ == max_states_) {
    return Error(TARN_UNSUPPORTED, "more than max_states %u states: shorten repetitions {m,n}, or raise max_states", max_states_);
  }
  return state_count_++;
}

Status Nfa::AddEmpty(uint32_t from, uint32_t to) {
  TARN_GROW_OR_RETURN(edges_.Push({from, to, 0, NfaEdge::Kind::kEmpty, 0, 0}));
  return Ok();
}

// What is added leads from `from` to `to`, and nowhere else: loops have a state of their own.
Status Nfa::Add(uint32_t index, uint32_t from, uint32_t to) {
  if (++steps_ > uint64_t{max_states_} * 16) {
    return Error(TARN_UNSUPPORTED, "repetitions {m,n} of more than %llu parts: shorten them, or raise max_states %u",
                 static_cast<unsigned long long>(steps_ - 1), max_states_);
  }
  if (!effort_.Spend(1)) return effort_.LimitError();
  const SyntaxNode& node = syntax_.node(index);
  switch (node.kind) {
    case NodeKind::kClass:
      return AddClass(node, from, to);
    case NodeKind::kRule:
      return AddRule(node.first, from, to);
    case NodeKind::kSequence:
      return AddSequence(node, from, to);
    case NodeKind::kAlternatives:
      for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) {
        TARN_RETURN_IF_ERROR(Add(child, from, to));
      }
      return Ok();
    case NodeKind::kRepeat:
      return AddRepeat(node, from, to);
  }
  return Ok();
}

// From the last byte of a character to its first: characters that end alike share the states of their ends.
Status Nfa::AddClass(const SyntaxNode& node, uint32_t from, uint32_t to) {
  shared_.Clear();
  for (uint32_t i = node.first; i < node.last; ++i) {
    Utf8Ranges sequences(syntax_.range(i).low, syntax_.range(i).high);
    for (ByteRanges bytes; sequences.Next(&bytes);) {
      uint32_t next = to;
      for (size_t at = bytes.length; at-- > 1;) {
        const uint8_t low = bytes.low[at], high = bytes.high[at];
        uint32_t state = UINT32_MAX;
        if (!effort_.Spend(shared_.size() + 1)) return effort_.LimitError();
        for (const SharedEnd& end : shared_) {
          if (end.low == low && end.high == high && end.to == next) state = end.state;
        }
        if (state == UINT32_MAX) {
          TARN_ASSIGN_OR_RETURN(state, NewState());
          TARN_GROW_OR_RETURN(shared_.Push({low, high, next, state}));
          TARN_GROW_OR_RETURN(edges_.Push({state, next, 0, NfaEdge::Kind::kBytes, low, high}));
        }
        next = state;
      }
      TARN_GROW_OR_RETURN(edges_.Push({from, next, 0, NfaEdge::Kind::kBytes, bytes.low[0], bytes.high[0]}));
    }
  }
  return Ok();
}

// A call stands for the texts that are not empty: that it is made always means progress.
Status Nfa::AddRule(uint32_t rule, uint32_t from, uint32_t to) {
  const RuleFacts& facts = facts_[rule];
  if (IsInlined(facts)) return Add(syntax_.rule(rule).node, from, to);
  if (facts.nonempty != 0) TARN_GROW_OR_RETURN(edges_.Push({from, to, rule, NfaEdge::Kind::kCall, 0, 0}));
  if (facts.nullable != 0) return AddEmpty(from, to);
  return Ok();
}

Status Nfa::AddSequence(const SyntaxNode& node, uint32_t from, uint32_t to) {
  for (uint32_t child = node.child; child != kNoNode; child = syntax_.node(child).next) {
    uint32_t next = to;
    if (syntax_.node(child).next != kNoNode) {
      TARN_ASSIGN_OR_RETURN(next, NewState());
    }
    TARN_RETURN_IF_ERROR(Add(child, from, next));
    from = next;
  }
  return node.child == kNoNode ? AddEmpty(from, to) : Ok();
}

Status Nfa::AddRepeat(const SyntaxNode& node, uint32_t from, uint32_t to) {
  const uint32_t least = node.first, most = node.last;
  const uint32_t copies = most == kNoLimit ? least : most;
  for (uint32_t i = 0; i < copies; ++i) {
    if (i >= least) TARN_RETURN_IF_ERROR(AddEmpty(from, to));
    TARN_ASSIGN_OR_RETURN(const uint32_t next, NewState());
    TARN_RETURN_IF_ERROR(Add(node.child, from, next));
    from = next;
  }
  if (most == kNoLimit) {
    TARN_ASSIGN_OR_RETURN(const uint32_t loop, NewState());
    TARN_RETURN_IF_ERROR(AddEmpty(from, loop));
    TARN_RETURN_IF_ERROR(Add(node.child, loop, loop));
    from = loop;
  }
  return AddEmpty(from, to);
}

Status Nfa::SortEdges() {
  if (!effort_.Spend(state_count_ + edges_.size())) return effort_.LimitError();
  first_.Clear();
  TARN_GROW_OR_RETURN(first_.Resize(state_count_ + 1));
  TARN_GROW_OR_RETURN(sorted_.Resize(edges_.size()));
  for (const NfaEdge& edge : edges_) ++first_[edge.from];
  uint32_t end = 0;
  for (uint32_t& first : first_) {
    end += first;
    first = end;
  }
  for (size_t i = edges_.size(); i-- > 0;) sorted_[--first_[edges_[i].from]] = edges_[i];
  return Ok();
}

}  // namespace tarn
