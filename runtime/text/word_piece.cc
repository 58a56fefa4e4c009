#include "runtime/text/word_piece.h"

#include "runtime/text/code_point.h"
#include "runtime/text/longest.h"

namespace tarn {
namespace {

// Stops counting behind `most`.
bool HasMoreCharacters(Span<const uint8_t> word, uint32_t most) {
  if (word.size() <= most) return false;
  size_t count = 0;
  for (const uint8_t* at = word.begin(); at < word.end() && count <= most; ++count) at += DecodeCodePoint(at, word.end()).bytes;
  return count > most;
}

}  // namespace

WordPiece::WordPiece(const TokenizerTables& tables) : vocabulary_(&tables.vocabulary) {
  const Trie& strings = vocabulary_->strings;
  continuation_ = strings.empty() ? Trie::kNone : strings.Walk(Trie::kRoot, vocabulary_->continuation);
}

WordTokens WordPiece::Encode(Span<const uint8_t> word) {
  size_t count = 0, at = 0;
  if (!HasMoreCharacters(word, vocabulary_->max_word_chars)) {
    while (at < word.size()) {
      const WordToken found =
          LongestString(vocabulary_->strings, at == 0 ? Trie::kRoot : continuation_, word.subspan(at, word.size() - at));
      if (found.length == 0) break;
      tokens_[count++] = found;
      at += found.length;
    }
  }
  if (at < word.size()) {
    tokens_[0] = {vocabulary_->unk_id, static_cast<uint32_t>(word.size())};
    count = 1;
  }
  return {{tokens_.data(), count}, false};
}

}  // namespace tarn
