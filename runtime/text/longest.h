// The longest string of a trie that a text begins with.
#ifndef TARN_RUNTIME_TEXT_LONGEST_H_
#define TARN_RUNTIME_TEXT_LONGEST_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/code_point.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/word_token.h"

namespace tarn {

// Of the strings that go on from `node`. Length 0: there is none.
inline WordToken LongestString(const Trie& strings, uint32_t node, Span<const uint8_t> text) {
  WordToken longest = {-1, 0};
  if (strings.empty()) return longest;
  for (size_t i = 0; i < text.size() && node != Trie::kNone; ++i) {
    node = strings.Child(node, text[i]);
    if (node != Trie::kNone && strings.value(node) >= 0) longest = {strings.value(node), static_cast<uint32_t>(i + 1)};
  }
  return longest;
}

// The token that a text, not an empty one, begins with, or a character that has none: `unk_id`.
inline WordToken LongestToken(const VocabularyTables& vocabulary, Span<const uint8_t> text) {
  const WordToken found = LongestString(vocabulary.strings, Trie::kRoot, text);
  return found.length > 0 ? found : WordToken{vocabulary.unk_id, DecodeCodePoint(text.begin(), text.end()).bytes};
}

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_LONGEST_H_
