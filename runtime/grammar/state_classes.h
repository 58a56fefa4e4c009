// Which states take the same beginnings of texts: those of a string with room for 900 and for 901 characters take the same tokens.
#ifndef TARN_RUNTIME_GRAMMAR_STATE_CLASSES_H_
#define TARN_RUNTIME_GRAMMAR_STATE_CLASSES_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/effort.h"
#include "runtime/grammar/shared_lists.h"

namespace tarn {

// States are alike to level 1 where they have the same bytes, calls and ends; to level n + 1 where, besides, what these lead to is
// alike to level n. So the texts of up to n - 1 bytes, and the calls and ends behind them, are those of the one as of the other.
class StateClasses {
 public:
  static constexpr uint32_t kLevels = 16;

  explicit StateClasses(const Allocator& allocator) : classes_(allocator), lists_(allocator) {}

  // Errors: TARN_UNSUPPORTED (more work than `*effort` allows), TARN_OUT_OF_MEMORY.
  Status Build(const Automaton& automaton, Effort* effort) {
    states_ = automaton.state_count();
    TARN_GROW_OR_RETURN(classes_.Resize(size_t{kLevels + 1} * states_));  // to level 0 all are alike
    for (uint32_t level = 1; level <= kLevels; ++level) {
      TARN_RETURN_IF_ERROR(lists_.Begin());
      for (uint32_t state = 0; state < states_; ++state) TARN_RETURN_IF_ERROR(AddState(automaton, level, state, effort));
    }
    return Ok();
  }

  // `level`: at most kLevels. Two states are alike where it is equal. Below the count of states.
  uint32_t ClassOf(uint32_t level, uint32_t state) const { return classes_[size_t{level} * states_ + state]; }

 private:
  Status AddState(const Automaton& automaton, uint32_t level, uint32_t state, Effort* effort) {
    Array<uint32_t>& list = lists_.elements();
    const size_t begin = list.size();
    TARN_GROW_OR_RETURN(list.Push(automaton.Ends(state) ? 1 : 0));
    for (const ByteEdge& edge : automaton.EdgesOf(state)) {
      const uint32_t bytes = static_cast<uint32_t>(edge.low) << 8 | edge.high;
      TARN_GROW_OR_RETURN(list.Push(bytes) && list.Push(ClassOf(level - 1, edge.to)));
    }
    for (const CallEdge& call : automaton.CallsOf(state)) {
      const bool is_tail = call.to == Automaton::kTail;
      const uint32_t to = is_tail ? Automaton::kTail : ClassOf(level - 1, call.to);
      TARN_GROW_OR_RETURN(list.Push(kCall) && list.Push(call.start) && list.Push(to));
    }
    if (!effort->Spend(list.size() - begin)) return effort->LimitError();
    TARN_ASSIGN_OR_RETURN(classes_[size_t{level} * states_ + state], lists_.Keep(begin));
    return Ok();
  }

  static constexpr uint32_t kCall = 1u << 16;  // no pair of bytes

  uint32_t states_ = 0;
  Array<uint32_t> classes_;      // [levels + 1, states]
  SharedLists<uint32_t> lists_;  // of the level that is being made
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_STATE_CLASSES_H_
