// Many tokens at once: a walk over a tree of their texts, as far as the grammar takes them.
#ifndef TARN_RUNTIME_GRAMMAR_WALK_H_
#define TARN_RUNTIME_GRAMMAR_WALK_H_

#include <cstdint>

#include "runtime/grammar/stacks.h"
#include "runtime/grammar/text_tree.h"

namespace tarn {

// Walks the texts of `tree` behind what the last level of `stacks` has read; `first` is what that level can read next. Calls
// visit(node) where the last level is that of the node's text and not empty, or the grammar or what is known of it ends there.
// False: a limit is exceeded. The levels are then as before.
template <typename Visit>
bool Walk(const TextTree& tree, const ByteSet& first, Stacks* stacks, Visit visit) {
  const uint32_t levels = stacks->levels();
  for (uint32_t i = 0; i < tree.node_count();) {
    const TextNode& node = tree.node(i);
    if (node.depth == 1 && !first.Has(node.byte)) {
      i = node.behind;
      continue;
    }
    stacks->Return(levels + node.depth - 1);
    if (!stacks->Step(node.byte)) {
      stacks->Return(levels);
      return false;
    }
    const bool goes_on = !stacks->stacks().empty();
    if (goes_on || stacks->last().may_end || stacks->last().unknown) visit(i);
    i = goes_on ? i + 1 : node.behind;
  }
  stacks->Return(levels);
  return true;
}

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_WALK_H_
