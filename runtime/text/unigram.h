// Unigram: of all ways to make a word of strings, the one with the largest sum of scores, exactly as the `tokenizers` package finds
// it.
//
// Viterbi's algorithm: a node for each place in the word has the best sum of the ways that end there, and where the last string of
// that way begins. Of equal ways the one whose last string is longest stays. A character without a string counts as one of the
// score `unk_score`. Neighbours of it are one unknown string. A word of n bytes takes 24 n bytes.
#ifndef TARN_RUNTIME_TEXT_UNIGRAM_H_
#define TARN_RUNTIME_TEXT_UNIGRAM_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/word_token.h"

namespace tarn {

class Unigram {
 public:
  explicit Unigram(const TokenizerTables& tables) : vocabulary_(&tables.vocabulary) {}
  // Room for words of up to `max_word_bytes`; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t max_word_bytes);

  // The tokens of a word that fits, which live until the next call. A word may be cut where no string lies across: the parts after
  // the first one continue it. Their sums go on, as rounding decides between ways that are equal.
  WordTokens Encode(Span<const uint8_t> word, bool continues);

 private:
  struct Node {
    double score;
    uint32_t begin;  // of the last string; kUnreached
    int32_t id;
  };
  static constexpr uint32_t kUnreached = UINT32_MAX;

  void Reach(size_t begin, size_t end, double score, int32_t id);
  void LeaveFrom(Span<const uint8_t> word, size_t at, size_t character_bytes);
  // Put tokens before those that there are.
  void Put(int32_t id, uint32_t length) { tokens_[--first_token_] = {id, length}; }
  void PutUnknown(Span<const uint8_t> string);

  const VocabularyTables* vocabulary_;
  Span<Node> nodes_;        // [max_word_bytes + 1]
  Span<WordToken> tokens_;  // [max_word_bytes], filled from the end
  size_t first_token_ = 0;
  double end_score_ = 0;  // of the last part
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_UNIGRAM_H_
