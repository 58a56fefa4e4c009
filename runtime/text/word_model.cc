#include "runtime/text/word_model.h"

namespace tarn {

void WordModel::TakeArrays(Bump* bump, uint32_t max_word_bytes) {
  if (tables_->kind == TokenizerKind::kBpe) bpe_.TakeArrays(bump, max_word_bytes);
  if (tables_->kind == TokenizerKind::kUnigram) unigram_.TakeArrays(bump, max_word_bytes);
  if (tables_->kind == TokenizerKind::kWordPiece) word_piece_.TakeArrays(bump, max_word_bytes);
}

WordTokens WordModel::Encode(Span<const uint8_t> word, bool continues) {
  if (tables_->kind == TokenizerKind::kBpe) return bpe_.Encode(word);
  if (tables_->kind == TokenizerKind::kUnigram) return unigram_.Encode(word, continues);
  if (tables_->kind == TokenizerKind::kWordPiece) return word_piece_.Encode(word);
  return EncodeWhole(word);
}

WordTokens WordModel::EncodeWhole(Span<const uint8_t> word) {
  const int32_t id = tables_->vocabulary.strings.Find(word);
  whole_ = {id < 0 ? tables_->vocabulary.unk_id : id, static_cast<uint32_t>(word.size())};
  return {{&whole_, 1}, false};
}

}  // namespace tarn
