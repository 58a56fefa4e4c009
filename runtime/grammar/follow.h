// Which bytes may come behind the text of a rule, wherever it is called: at a stack whose rule ends, only few tokens go on.
#ifndef TARN_RUNTIME_GRAMMAR_FOLLOW_H_
#define TARN_RUNTIME_GRAMMAR_FOLLOW_H_

#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/byte_set.h"
#include "runtime/grammar/effort.h"

namespace tarn {

class FollowSets {
 public:
  explicit FollowSets(const Allocator& allocator) : first_(allocator), follow_(allocator) {}

  // Errors: TARN_UNSUPPORTED (more work than `*effort` allows), TARN_OUT_OF_MEMORY.
  Status Build(const Automaton& automaton, Effort* effort) {
    TARN_GROW_OR_RETURN(first_.Resize(automaton.rule_count()) && follow_.Resize(automaton.rule_count()));
    TARN_RETURN_IF_ERROR(
        Repeat(effort, [&](uint32_t rule) { return first_[rule].Join(FirstOf(automaton, automaton.StartOf(rule))); }));
    return Repeat(effort, [&](uint32_t rule) { return AddCallsOf(automaton, rule); });
  }

  const ByteSet& Of(uint32_t rule) const { return follow_[rule]; }

 private:
  // Until add(rule) changes nothing for any rule.
  template <typename Add>
  Status Repeat(Effort* effort, Add add) {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t rule = 0; rule < first_.size(); ++rule) {
        changed = add(rule) || changed;
        if (!effort->Spend(1 + work_)) return effort->LimitError();
        work_ = 0;
      }
    }
    return Ok();
  }

  // The bytes that come next in a state.
  ByteSet FirstOf(const Automaton& automaton, uint32_t state) {
    ByteSet set;
    for (const ByteEdge& edge : automaton.EdgesOf(state)) set.Add(edge.low, edge.high);
    for (const CallEdge& call : automaton.CallsOf(state)) set.Join(first_[automaton.RuleOf(call.start)]);
    work_ += automaton.EdgesOf(state).size() + automaton.CallsOf(state).size();
    return set;
  }

  // What follows the calls of `rule`. Whether that is new.
  bool AddCallsOf(const Automaton& automaton, uint32_t rule) {
    bool changed = false;
    for (uint32_t state = automaton.StartOf(rule); state < automaton.StartOf(rule + 1); ++state) {
      ++work_;
      for (const CallEdge& call : automaton.CallsOf(state)) {
        ByteSet behind;
        if (call.to != Automaton::kTail) behind = FirstOf(automaton, call.to);
        if (call.to == Automaton::kTail || automaton.Ends(call.to)) behind.Join(follow_[rule]);
        changed = follow_[automaton.RuleOf(call.start)].Join(behind) || changed;
      }
    }
    return changed;
  }

  Array<ByteSet> first_, follow_;  // [rules]
  uint64_t work_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_FOLLOW_H_
