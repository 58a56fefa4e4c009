// Words that were seen lately, and their tokens: most words of a text are among few. A set-associative cache: a word has two
// places, and replaces the word of the two that was used least recently.
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

  // `slots` is a power of two.
  void TakeArrays(Bump* bump, uint32_t slots) { entries_ = TakeArray<Entry>(*bump, slots); }

  // Copies the tokens of a word of 1 to kMaxWordBytes bytes; returns how many, 0: the word is not here.
  size_t Find(Span<const uint8_t> word, WordToken (&tokens)[kMaxTokens]) {
    const Key key(word);
    Entry *const newer = Newer(key), *const older = Older(newer);
    if (newer->key == key) return Copy(*newer, tokens);
    if (!(older->key == key)) return 0;
    std::swap(*newer, *older);
    return Copy(*newer, tokens);
  }

  // Adds a word that is not here, if there is room for its tokens.
  void Add(Span<const uint8_t> word, Span<const WordToken> tokens) {
    if (tokens.empty() || tokens.size() > kMaxTokens) return;
    const Key key(word);
    Entry* const newer = Newer(key);
    *Older(newer) = *newer;
    newer->key = key;
    for (size_t i = 0; i < kMaxTokens; ++i) {
      const uint32_t length = i < tokens.size() ? tokens[i].length : 0;
      newer->lengths[i] = static_cast<uint8_t>(length | ((length & kStays) != 0 ? kStaysHere : 0));
      newer->ids[i] = i < tokens.size() ? tokens[i].id : 0;
    }
  }

 private:
  static constexpr uint8_t kStaysHere = 1u << 7;  // kStays
  static_assert(kMaxWordBytes < kStaysHere);

  struct Key {
    Key() = default;
    explicit Key(Span<const uint8_t> word) : parts{0, 0, uint64_t{word.size()} << 56} {
      std::memcpy(parts, word.data(), word.size());
    }
    bool operator==(const Key& other) const { return std::memcmp(parts, other.parts, sizeof(parts)) == 0; }

    uint64_t parts[3];  // bytes of the word, zeros, and in the last byte how many
  };

  struct Entry {
    Key key;
    uint8_t lengths[kMaxTokens];  // of its tokens, with kStaysHere; 0 behind the last one
    int32_t ids[kMaxTokens];
  };

  // The places of a word: that of the one used last, and that of the other. They are one where the cache has one entry.
  Entry* Newer(const Key& key) {
    const uint64_t(&parts)[3] = key.parts;
    const uint64_t mixed = (parts[0] * 0x9E3779B97F4A7C15u) ^ (parts[1] * 0xC2B2AE3D27D4EB4Fu) ^ (parts[2] * 0x165667B19E3779F9u);
    return &entries_[static_cast<size_t>((mixed ^ mixed >> 29) >> 16) & (entries_.size() - 1) & ~size_t{1}];
  }
  Entry* Older(Entry* newer) { return newer + (entries_.size() > 1 ? 1 : 0); }

  static size_t Copy(const Entry& entry, WordToken (&tokens)[kMaxTokens]) {
    size_t count = 0;
    for (; count < kMaxTokens && entry.lengths[count] != 0; ++count) {
      const uint32_t length = entry.lengths[count];
      tokens[count] = {entry.ids[count], (length & ~uint32_t{kStaysHere}) | ((length & kStaysHere) != 0 ? kStays : 0)};
    }
    return count;
  }

  Span<Entry> entries_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_CACHE_H_
