// What makes tokens of a word: the model of a tokenizer, whichever it is.
#ifndef TARN_RUNTIME_TEXT_WORD_MODEL_H_
#define TARN_RUNTIME_TEXT_WORD_MODEL_H_

#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/bpe.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/unigram.h"
#include "runtime/text/word_piece.h"
#include "runtime/text/word_token.h"

namespace tarn {

class WordModel {
 public:
  // `tables` outlive it.
  explicit WordModel(const TokenizerTables& tables) : tables_(&tables), bpe_(tables), unigram_(tables), word_piece_(tables) {}
  // Room for words of up to `max_word_bytes`; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t max_word_bytes);

  // The tokens of a word that fits, or of the part of a cut one that `continues` it. They live until the next call.
  WordTokens Encode(Span<const uint8_t> word, bool continues);
  // The tokens depend on nothing but the bytes.
  bool IsAlwaysTheSame(bool continues) const { return !continues || tables_->kind != TokenizerKind::kUnigram; }

 private:
  WordTokens EncodeWhole(Span<const uint8_t> word);

  const TokenizerTables* tables_;
  Bpe bpe_;
  Unigram unigram_;
  WordPiece word_piece_;
  WordToken whole_ = {};
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_MODEL_H_
