// Byte-pair encoding of a word, exactly as the `tokenizers` package does it.
//
// A word begins as one symbol for each byte. A queue holds the pairs that may be merged, by (rank, place); the first one merges, if
// its two symbols still make the same token, and the pairs with its neighbours join the queue. A word of n bytes takes
// O(n log n) time and 32 n bytes.
#ifndef TARN_RUNTIME_TEXT_BPE_H_
#define TARN_RUNTIME_TEXT_BPE_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

// A token of a word and how long it is.
struct WordToken {
  int32_t id;
  uint32_t length;
};

struct WordTokens {
  Span<const WordToken> tokens;
  // A byte that no id stands for was left out. Lengths then count bytes of the word as the byte-level alphabet spells it
  // (AlphabetWidth), from its beginning and without the gap: ranges after the gap are too far left. So they are in the package.
  bool has_gap;
};

// Bytes of the character that stands for a byte in the byte-level alphabet of GPT-2.
inline uint32_t AlphabetWidth(uint8_t byte) { return byte > 0x20 && byte < 0x7F ? 1 : 2; }

class Bpe {
 public:
  Bpe() = default;
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
  // False: a byte was left out.
  bool Begin(Span<const uint8_t> word);
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
