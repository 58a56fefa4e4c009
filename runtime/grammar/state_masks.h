// What is known of the tokens that may come next from the state on top of a stack alone, worked out when a grammar is created.
//
// The text of a token is read from a state with nothing known below. While no rule ends, what is below does not matter. Where one
// ends before the token does, the rest of the token is left for later: a stack that has the state on top walks the tree from there
// on. Such masks are kept for the states from which much of the vocabulary can be read, as inside a string; from others a walk is
// short. (Dong et al. 2024, XGrammar, section 3.1: tokens that do not depend on the context, and those that do.)
#ifndef TARN_RUNTIME_GRAMMAR_STATE_MASKS_H_
#define TARN_RUNTIME_GRAMMAR_STATE_MASKS_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/grammar/automaton.h"
#include "runtime/grammar/stacks.h"
#include "runtime/grammar/vocabulary.h"

namespace tarn {

// Bits of tokens, as the words of a mask have them.
inline size_t MaskWords(uint32_t vocab_size) { return (size_t{vocab_size} + 63) / 64; }
inline void AllowTokens(Span<const int32_t> tokens, uint64_t* words) {
  for (const int32_t token : tokens) words[token / 64] |= uint64_t{1} << (token % 64);
}

struct StateMask {
  uint32_t words;         // place of its bits
  uint32_t first_resume;  // place in the list of nodes from which stacks go on
  uint32_t resumes;
  uint32_t deepest;  // how much deeper than its own a stack gets within a token
};

class StateMasks {
 public:
  explicit StateMasks(const Allocator& allocator)
      : index_(allocator), masks_(allocator), words_(allocator), resumes_(allocator), next_(allocator), buckets_(allocator) {}

  // `stacks` is used for it. Errors: TARN_OUT_OF_MEMORY.
  Status Build(const Automaton& automaton, const Vocabulary& vocabulary, uint32_t vocab_size, Stacks* stacks);

  // nullptr: the state has none.
  const StateMask* Find(uint32_t state) const { return index_[state] < 0 ? nullptr : &masks_[static_cast<size_t>(index_[state])]; }
  const uint64_t* Words(const StateMask& mask) const { return words_.data() + mask.words; }
  Span<const uint32_t> Resumes(const StateMask& mask) const { return {resumes_.data() + mask.first_resume, mask.resumes}; }
  uint64_t bytes() const {
    return index_.bytes() + masks_.bytes() + words_.bytes() + resumes_.bytes() + next_.bytes() + buckets_.bytes();
  }

 private:
  Status AddState(uint32_t state, const Vocabulary& vocabulary, size_t words, Stacks* stacks);
  Status Keep(uint32_t state, StateMask mask, size_t words);

  Array<int32_t> index_;  // [states]: a mask, or -1
  Array<StateMask> masks_;
  Array<uint64_t> words_;  // of all masks; those with the same bits share them
  Array<uint32_t> resumes_;
  Array<uint32_t> next_, buckets_;  // masks, by the hashes of their words
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_STATE_MASKS_H_
