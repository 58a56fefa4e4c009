// What is known of the tokens that may come next from the state on top of a stack alone, worked out when a grammar is created.
//
// The text of a token is read from a state with nothing known below. While no rule ends, what is below does not matter. Where one
// ends before the token does, the rest of the token is left for later: a stack that has the state on top walks a tree of such
// rests. What begins differently may go on alike: behind a name there are as many rests as tokens of a name and more, and few that
// differ. Such masks are kept for the states from which much of the vocabulary can be read, as inside a string; from others a walk
// is short. (Dong et al. 2024, XGrammar, section 3.1: tokens that do not depend on the context, and those that do.)
#ifndef TARN_RUNTIME_GRAMMAR_STATE_MASKS_H_
#define TARN_RUNTIME_GRAMMAR_STATE_MASKS_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/shared_lists.h"
#include "runtime/grammar/stacks.h"
#include "runtime/grammar/text_tree.h"

namespace tarn {

// Bits of tokens, as the words of a mask have them.
inline size_t MaskWords(uint32_t vocab_size) { return (size_t{vocab_size} + 63) / 64; }
inline void AllowTokens(Span<const int32_t> tokens, uint64_t* words) {
  for (const int32_t token : tokens) words[token / 64] |= uint64_t{1} << (token % 64);
}

struct StateMask {
  uint32_t words;    // the list of its bits
  uint32_t rests;    // the tree of what is left of tokens where the rule ends within them
  uint32_t deepest;  // how much deeper than its own a stack gets within a token
};

// Of the bits and the trees of all masks. States behind it have no mask: what they take is then found by a walk.
constexpr uint64_t kMostMaskBytes = uint64_t{1} << 26;

struct MaskLimits {
  StackLimits stacks;
  size_t words;         // of a mask
  uint64_t mask_bytes;  // of all of them
};

class StateMasks {
 public:
  explicit StateMasks(const Allocator& allocator) : index_(allocator), masks_(allocator), words_(allocator), rests_(allocator) {}

  // Errors: TARN_UNSUPPORTED (more work than `*effort` allows), TARN_OUT_OF_MEMORY.
  Status Build(const Automaton& automaton, const TokenTexts& texts, const TextTree& vocabulary, const MaskLimits& limits,
               const Allocator& allocator, Effort* effort);

  // nullptr: the state has none.
  const StateMask* Find(uint32_t state) const { return index_[state] < 0 ? nullptr : &masks_[static_cast<size_t>(index_[state])]; }
  Span<const uint64_t> Words(const StateMask& mask) const { return words_.Of(mask.words); }
  TextTree Rests(const StateMask& mask) const { return rests_.Of(mask.rests); }
  uint64_t used_bytes() const { return words_.used_bytes() + rests_.used_bytes(); }
  uint64_t bytes() const { return index_.bytes() + masks_.bytes() + words_.bytes() + rests_.bytes(); }

 private:
  friend class MaskBuilder;

  Array<int32_t> index_;  // [states]: a mask, or -1
  Array<StateMask> masks_;
  SharedLists<uint64_t> words_;
  TextTrees rests_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_STATE_MASKS_H_
