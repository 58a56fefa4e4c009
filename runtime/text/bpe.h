// Byte-pair encoding of a word, exactly as the `tokenizers` package does it.
//
// A word begins as one symbol for each byte, or for each character. A queue holds the pairs that may be merged, by (rank, place);
// the first one merges, if its two symbols still make the same token, and the pairs with its neighbours join the queue. A word of n
// bytes takes O(n log n) time and 32 n bytes.
#ifndef TARN_RUNTIME_TEXT_BPE_H_
#define TARN_RUNTIME_TEXT_BPE_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/word_token.h"

namespace tarn {

// Bytes of what stands for a byte: in the byte-level alphabet of GPT-2 a character, over characters the byte itself.
inline uint32_t AlphabetWidth(const TokenizerTables& tables, uint8_t byte) {
  return !tables.vocabulary.strings.empty() || (byte > 0x20 && byte < 0x7F) ? 1 : 2;
}

class Bpe {
 public:
  // `tables` outlive it.
  explicit Bpe(const TokenizerTables& tables) : tables_(&tables) {}
  // Room for words of up to `max_word_bytes`; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t max_word_bytes);

  // The tokens of a word that fits, which live until the next call.
  WordTokens Encode(Span<const uint8_t> word);

 private:
  struct Symbol {
    uint32_t id;
    uint32_t length;  // 0: merged into another one
    uint32_t previous, next;
  };
  static constexpr uint32_t kNoSymbol = UINT32_MAX;

  // The id of a word that is a token whatever the merges say; -1: it is not one.
  int32_t FindWord(Span<const uint8_t> word) const;
  uint32_t FindMerge(uint32_t left, uint32_t right) const;
  // -1: unknown. The last byte of a word may have an id of its own.
  int32_t IdOfByte(uint8_t byte, bool is_last) const;
  // The byte or the character that `word` begins with; id -1: unknown.
  WordToken FirstLetter(Span<const uint8_t> word) const;
  // One symbol for each byte of an unknown character. False: not all of them have ids.
  bool AddBytes(Span<const uint8_t> character);
  // False: something was left out.
  bool Begin(Span<const uint8_t> word);
  bool is_over_bytes() const { return tables_->vocabulary.strings.empty(); }
  void Add(uint32_t id, uint32_t length);
  void Queue(uint32_t left);
  void MergeAll();

  const TokenizerTables* tables_ = nullptr;
  Span<Symbol> symbols_;  // [max_word_bytes]
  Span<uint64_t> queue_;  // [2 * max_word_bytes], a heap of rank << 32 | place; then the tokens
  uint32_t symbol_count_ = 0;
  size_t queued_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_BPE_H_
