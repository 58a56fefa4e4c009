// WordPiece: the longest string that a word begins with, then the longest one that goes on from there, and so on. A word that this
// does not reach the end of, or that has too many characters, is one unknown token.
#ifndef TARN_RUNTIME_TEXT_WORD_PIECE_H_
#define TARN_RUNTIME_TEXT_WORD_PIECE_H_

#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/word_token.h"

namespace tarn {

class WordPiece {
 public:
  explicit WordPiece(const TokenizerTables& tables);
  // Room for words of up to `max_word_bytes`; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t max_word_bytes) { tokens_ = TakeArray<WordToken>(*bump, max_word_bytes); }

  // The tokens of a word that fits, which live until the next call.
  WordTokens Encode(Span<const uint8_t> word);

 private:
  const VocabularyTables* vocabulary_;
  uint32_t continuation_ = Trie::kNone;  // the node of the trie that leads to strings behind the first one
  Span<WordToken> tokens_;               // [max_word_bytes]
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_PIECE_H_
