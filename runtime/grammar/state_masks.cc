#include "runtime/grammar/state_masks.h"

#include <algorithm>
#include <cstring>

#include "runtime/grammar/walk.h"

namespace tarn {
namespace {

constexpr size_t kBuckets = 1024;
// A walk over fewer nodes takes no longer than to look a mask up and to walk the rest: some microseconds.
constexpr uint32_t kFewNodes = 256;

}  // namespace

Status StateMasks::Build(const Automaton& automaton, const Vocabulary& vocabulary, uint32_t vocab_size, Stacks* stacks) {
  TARN_GROW_OR_RETURN(index_.Resize(automaton.state_count()));
  TARN_GROW_OR_RETURN(buckets_.Resize(kBuckets));
  std::fill(index_.begin(), index_.end(), -1);
  std::fill(buckets_.begin(), buckets_.end(), UINT32_MAX);
  for (uint32_t state = 0; state < automaton.state_count(); ++state) {
    if (automaton.EdgesOf(state).empty()) continue;
    TARN_RETURN_IF_ERROR(AddState(state, vocabulary, MaskWords(vocab_size), stacks));
  }
  return Ok();
}

Status StateMasks::AddState(uint32_t state, const Vocabulary& vocabulary, size_t words, Stacks* stacks) {
  const size_t words_before = words_.size(), resumes_before = resumes_.size();
  TARN_GROW_OR_RETURN(words_.Resize(words_before + words));
  std::fill_n(words_.data() + words_before, words, 0);
  stacks->BeginUnknown(state);
  stacks->ResetDeepest();
  uint32_t visits = 0;
  bool fits = true;
  const bool complete = Walk(vocabulary, 0, vocabulary.node_count(), 0, stacks, [&](uint32_t node) {
    ++visits;
    AllowTokens(vocabulary.TokensOf(node), words_.data() + words_before);
    if (stacks->last().unknown && vocabulary.node(node).behind > node + 1) fits = fits && resumes_.Push(node);
  });
  if (!fits) return NoMemoryForGrammar();
  // A limit that is exceeded here is found again by the walk of a stack, which has its place in a text for the message.
  if (!complete || visits < kFewNodes) {
    words_.Truncate(words_before);
    resumes_.Truncate(resumes_before);
    return Ok();
  }
  const StateMask mask = {static_cast<uint32_t>(words_before), static_cast<uint32_t>(resumes_before),
                          static_cast<uint32_t>(resumes_.size() - resumes_before), stacks->deepest()};
  return Keep(state, mask, words);
}

Status StateMasks::Keep(uint32_t state, StateMask mask, size_t words) {
  const uint64_t* bits = words_.data() + mask.words;
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < words; ++i) hash = (hash ^ bits[i]) * 1099511628211u;
  uint32_t* bucket = &buckets_[static_cast<size_t>((hash ^ hash >> 32) % kBuckets)];
  for (uint32_t i = *bucket; i != UINT32_MAX; i = next_[i]) {
    if (std::memcmp(words_.data() + masks_[i].words, bits, words * sizeof(uint64_t)) != 0) continue;
    words_.Truncate(mask.words);
    mask.words = masks_[i].words;
    break;
  }
  TARN_GROW_OR_RETURN(masks_.Push(mask));
  TARN_GROW_OR_RETURN(next_.Push(*bucket));
  *bucket = static_cast<uint32_t>(masks_.size() - 1);
  index_[state] = static_cast<int32_t>(*bucket);
  return Ok();
}

}  // namespace tarn
