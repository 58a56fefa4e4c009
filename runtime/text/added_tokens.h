// Finds the tokens that were added to a vocabulary in a text: leftmost, then longest.
#ifndef TARN_RUNTIME_TEXT_ADDED_TOKENS_H_
#define TARN_RUNTIME_TEXT_ADDED_TOKENS_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/pattern.h"
#include "runtime/text/text_window.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

// The tokens of one trie, and which bytes they begin with.
class AddedTokenSet {
 public:
  AddedTokenSet() = default;
  AddedTokenSet(const AddedTables& added, const Trie& trie);

 private:
  friend class AddedTokenScanner;
  bool Begins(uint8_t byte) const { return (first_bytes_[byte / 32] >> (byte % 32) & 1) != 0; }

  const AddedTables* added_ = nullptr;
  const Trie* trie_ = nullptr;
  uint32_t first_bytes_[8] = {};
  bool takes_spaces_before_ = false;  // some token does
  bool has_single_words_ = false;
};

// Parts of a text in which special tokens are text like any other.
struct PlainText {
  // A match of the scanner's text, which is that of `window`, or the whole text.
  bool Touches(TextRange match) const;

  Span<const TextRange> ranges;        // of the whole text; ascending
  const TextWindow* window = nullptr;  // nullptr: the whole text
};

struct FoundToken {
  TextRange range;  // at least a byte, with what it takes of the spaces around it; may overlap with that of the token before it
  uint32_t id;
};

class AddedTokenScanner {
 public:
  AddedTokenScanner() = default;
  // From byte `begin` of the text. `set`, the parts of `plain` and the text outlive it.
  AddedTokenScanner(const AddedTokenSet& set, const PlainText& plain, Span<const char> text, bool is_whole, size_t begin = 0)
      : set_(&set), plain_(plain), text_(text), is_whole_(is_whole), search_(begin), last_end_(begin), known_before_(begin) {}

  ScanStatus Next(FoundToken* token);

  // After kMore or kEnd: no token begins before this.
  size_t certain() const { return certain_; }
  // As PatternScanner's. What was dropped lies before certain().
  void Continue(Span<const char> text, size_t dropped, bool is_whole);

 private:
  // The next match of the trie at or after `search_`; its value, or -1. kMore where a longer one may follow.
  ScanStatus Match(TextRange* match, int32_t* value);
  ScanStatus Unsure(size_t at);
  // Whether the character before, or at, a place is one of a word.
  bool IsWordBefore(size_t at) const;
  bool IsWordAt(size_t at) const;
  // The end of the spaces from `begin`.
  size_t SpacesEnd(size_t begin);

  const AddedTokenSet* set_ = nullptr;
  PlainText plain_;
  Span<const char> text_;
  bool is_whole_ = true;
  size_t search_ = 0;
  size_t last_end_ = 0;        // of the token before
  TextRange spaces_ = {0, 0};  // a run of spaces that was walked over
  size_t certain_ = 0;
  // What lies before known_before_ may be gone: whether it is a character of a word.
  size_t known_before_ = 0;
  bool is_word_before_ = false;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_ADDED_TOKENS_H_
