// Words that were seen lately, and their tokens: most words of a text are among few. A set-associative cache: a word has two
// places, and takes that of the word of the two that was not seen for longer.
#ifndef TARN_RUNTIME_TEXT_WORD_CACHE_H_
#define TARN_RUNTIME_TEXT_WORD_CACHE_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/text/word_token.h"

namespace tarn {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 23;
  static constexpr size_t kMaxTokens = 8;

  struct Entry {
    uint64_t key[3];              // bytes of the word, zeros, and in the last byte how many
    uint8_t lengths[kMaxTokens];  // of its tokens, with kStaysHere; 0 behind the last one
    int32_t ids[kMaxTokens];
  };

  // `slots` is a power of two.
  void TakeArrays(Bump* bump, uint32_t slots) { entries_ = TakeArray<Entry>(*bump, slots); }

  // The place of a word of 1 to kMaxWordBytes bytes, which has its key, until the next call; `*found` says whether it has its
  // tokens as well.
  Entry* Find(Span<const uint8_t> word, bool* found) {
    uint64_t key[3] = {0, 0, uint64_t{word.size()} << 56};
    std::memcpy(key, word.data(), word.size());
    const uint64_t mixed = (key[0] * 0x9E3779B97F4A7C15u) ^ (key[1] * 0xC2B2AE3D27D4EB4Fu) ^ (key[2] * 0x165667B19E3779F9u);
    const size_t slot = static_cast<size_t>((mixed ^ mixed >> 29) >> 16) & (entries_.size() - 1);
    Entry* const entry = &entries_[slot & ~size_t{1}];
    *found = Has(*entry, key);
    if (*found) return entry;
    Entry* const older = &entries_[slot | (entries_.size() > 1 ? 1 : 0)];
    *found = Has(*older, key);
    std::swap(*entry, *older);
    if (!*found) std::memcpy(entry->key, key, sizeof(key));
    return entry;
  }

  // The tokens of an entry; returns how many.
  static size_t Copy(const Entry& entry, WordToken (&tokens)[kMaxTokens]) {
    size_t count = 0;
    for (; count < kMaxTokens && entry.lengths[count] != 0; ++count) {
      const uint32_t length = entry.lengths[count];
      tokens[count] = {entry.ids[count], (length & ~uint32_t{kStaysHere}) | ((length & kStaysHere) != 0 ? kStays : 0)};
    }
    return count;
  }

  // Gives an entry its tokens, or empties it where they do not fit.
  static void Fill(Entry* entry, Span<const WordToken> tokens) {
    if (tokens.empty() || tokens.size() > kMaxTokens) {
      entry->key[2] = 0;
      return;
    }
    for (size_t i = 0; i < kMaxTokens; ++i) {
      const uint32_t length = i < tokens.size() ? tokens[i].length : 0;
      entry->lengths[i] = static_cast<uint8_t>(length | ((length & kStays) != 0 ? kStaysHere : 0));
      entry->ids[i] = i < tokens.size() ? tokens[i].id : 0;
    }
  }

 private:
  static bool Has(const Entry& entry, const uint64_t (&key)[3]) {
    return entry.key[0] == key[0] && entry.key[1] == key[1] && entry.key[2] == key[2];
  }

  static constexpr uint8_t kStaysHere = 1u << 7;  // kStays
  static_assert(kMaxWordBytes < kStaysHere);

  Span<Entry> entries_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_CACHE_H_
