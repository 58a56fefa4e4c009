#include "runtime/grammar/state_masks.h"

#include <algorithm>

#include "runtime/grammar/walk.h"

namespace tarn {
namespace {

// A walk over fewer nodes takes no longer than to look a mask up and to walk the rest: some microseconds.
constexpr uint32_t kFewNodes = 256;

}  // namespace

Status StateMasks::Build(const Automaton& automaton, const Vocabulary& vocabulary, uint32_t vocab_size, uint64_t most_bytes,
                         Stacks* stacks) {
  TARN_GROW_OR_RETURN(index_.Resize(automaton.state_count()));
  TARN_RETURN_IF_ERROR(words_.Begin(automaton.state_count()));
  TARN_RETURN_IF_ERROR(resumes_.Begin(automaton.state_count()));
  std::fill(index_.begin(), index_.end(), -1);
  for (uint32_t state = 0; state < automaton.state_count() && used_bytes() < most_bytes; ++state) {
    if (automaton.EdgesOf(state).empty()) continue;
    TARN_RETURN_IF_ERROR(AddState(state, vocabulary, MaskWords(vocab_size), most_bytes, stacks));
  }
  return Ok();
}

Status StateMasks::AddState(uint32_t state, const Vocabulary& vocabulary, size_t words, uint64_t most_bytes, Stacks* stacks) {
  Array<uint64_t>& bits = words_.elements();
  Array<uint32_t>& nodes = resumes_.elements();
  const size_t words_before = bits.size(), nodes_before = nodes.size();
  TARN_GROW_OR_RETURN(bits.Resize(words_before + words));
  std::fill_n(bits.data() + words_before, words, 0);
  stacks->BeginUnknown(state);
  stacks->ResetDeepest();
  uint32_t visits = 0;
  bool fits = true;
  const bool complete = Walk(vocabulary, 0, vocabulary.node_count(), 0, stacks, [&](uint32_t node) {
    ++visits;
    AllowTokens(vocabulary.TokensOf(node), bits.data() + words_before);
    if (stacks->last().unknown && vocabulary.node(node).behind > node + 1) fits = fits && nodes.Push(node);
  });
  if (!fits) return NoMemoryForGrammar();
  // A limit that is exceeded here is found again by the walk of a stack, which has its place in a text for the message.
  if (!complete || visits < kFewNodes || used_bytes() > most_bytes) {
    bits.Truncate(words_before);
    nodes.Truncate(nodes_before);
    return Ok();
  }
  TARN_ASSIGN_OR_RETURN(const uint32_t shared_words, words_.Keep(words_before));
  TARN_ASSIGN_OR_RETURN(const uint32_t shared_nodes, resumes_.Keep(nodes_before));
  TARN_GROW_OR_RETURN(masks_.Push({shared_words, shared_nodes, stacks->deepest()}));
  index_[state] = static_cast<int32_t>(masks_.size() - 1);
  return Ok();
}

}  // namespace tarn
