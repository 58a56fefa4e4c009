// The stacks that a text leads to: a grammar that is followed byte by byte.
//
// A stack is a state, and below it the states to return to when rules end. Stacks share what is equal below: a node is a state to
// return to and the node under it, and there is one node for each such pair. The stacks that a text may be in are a list of
// (state, node), a level. Levels lie one behind the other, so that a walk over a trie goes back by forgetting the last ones.
#ifndef TARN_RUNTIME_GRAMMAR_STACKS_H_
#define TARN_RUNTIME_GRAMMAR_STACKS_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "core/status.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/byte_set.h"
#include "runtime/grammar/effort.h"

namespace tarn {

struct StackLimits {
  uint32_t max_depth;   // states to return to, of one stack
  uint32_t max_stacks;  // stacks that a text may be in
};

struct Stack {
  uint32_t state;
  uint32_t node;
};

class Stacks {
 public:
  static constexpr uint32_t kBottom = 0;   // nothing to return to: the grammar may end
  static constexpr uint32_t kUnknown = 1;  // what is below is not known

  // Where a level ends.
  struct Level {
    uint32_t items = 0;    // it has those from the end of the level before on
    uint32_t nodes = 2;    // that existed when it was complete
    bool may_end = false;  // the text may end here
    bool unknown = false;  // a stack went on below kUnknown
  };

  // `most_levels` are kept at a time. `effort`: where steps are counted, at the creation of a grammar.
  Stacks(const Automaton& automaton, const StackLimits& limits, uint32_t most_levels, Effort* effort = nullptr)
      : automaton_(automaton), limits_(limits), most_levels_(most_levels), effort_(effort) {}

  // Lays the arrays out; only counts when `bump` has no block.
  void TakeArrays(Bump* bump);

  // One level: a text that has not begun; a text in `state` with nothing known below. False: as Step().
  bool BeginText();
  void BeginUnknown(uint32_t state);

  // Adds a level: the last one after `byte`. False: a limit is exceeded, as LimitError() says, and the levels are as before.
  bool Step(uint8_t byte) { return StepFrom(count_ - 1, byte); }
  // The same for another level than the last.
  bool StepFrom(uint32_t level, uint8_t byte);
  // Adds a level: what follows where a rule over `node` has ended. False: as Step().
  bool PushReturn(uint32_t node);
  // Adds a level: stacks of `from` alone.
  void PushSome(Span<const Stack> from);
  // Forgets all levels but the first `count`.
  void Return(uint32_t count);
  // Keeps the last level alone, and the nodes that it needs.
  void KeepLast();

  // The one level of a text between tokens, in LevelBytes() at any alignment. RestoreLevel() takes what SaveLevel() wrote for the
  // same automaton and limits.
  size_t LevelBytes() const;
  void SaveLevel(uint8_t* state) const;
  void RestoreLevel(const uint8_t* state);

  uint32_t levels() const { return count_; }
  const Level& last() const { return levels_[count_ - 1]; }
  const Level& level(uint32_t i) const { return levels_[i]; }
  Span<const Stack> stacks() const { return StacksOf(count_ - 1); }
  Span<const Stack> StacksOf(uint32_t level) const {
    const uint32_t begin = level > 0 ? levels_[level - 1].items : 0;
    return {items_.data() + begin, levels_[level].items - begin};
  }
  // The bytes that the last level can read.
  ByteSet NextBytes() const;
  uint32_t DepthOf(uint32_t node) const { return nodes_[node].depth; }

  // The deepest node that was used since ResetDeepest().
  uint32_t deepest() const { return deepest_; }
  void ResetDeepest() { deepest_ = 0; }
  // False, with max_depth as the limit that LimitError() names.
  bool FailAtDepth() { return Fail(Limit::kDepth); }
  Status LimitError() const;

 private:
  enum class Limit : uint8_t { kNone, kDepth, kStacks, kFollowed, kNodes, kEffort };
  struct Node {
    uint32_t state, below;
    uint32_t depth;
    uint32_t next_in_bucket;
  };

  uint32_t NodesBefore() const { return count_ == 0 ? kUnknown + 1 : levels_[count_ - 1].nodes; }
  void Open();
  bool Close(bool complete);
  bool Follow();
  bool Add(uint32_t state, uint32_t node);
  bool AddCalls(const Stack& stack);
  bool AddReturn(uint32_t node);
  bool FindNode(uint32_t state, uint32_t below, uint32_t* found);
  uint32_t* BucketOf(const Node& node) const;
  void DropNodes(uint32_t count);
  void AddToBucket(uint32_t node);
  bool Fail(Limit limit) {
    limit_ = limit;
    return false;
  }
  bool Spend(uint64_t steps) { return effort_ == nullptr || effort_->Spend(steps) || Fail(Limit::kEffort); }

  const Automaton& automaton_;
  const StackLimits limits_;
  const uint32_t most_levels_;
  Effort* const effort_;
  Span<Stack> items_;
  Span<Level> levels_;
  Span<Node> nodes_;
  Span<uint32_t> buckets_;   // a power of two
  Span<uint32_t> moved_;     // [nodes]: where KeepLast() puts them
  uint32_t count_ = 0;       // of levels
  uint32_t node_count_ = 2;  // of nodes
  uint32_t deepest_ = 0;
  Limit limit_ = Limit::kNone;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_STACKS_H_
