// Finds the matches of a compiled pattern in UTF-8 text: the regular expressions of tokenizer.json.
//
// A pattern is a regular expression that tarn-convert compiled into tables (pattern_format.h). Its matches are those of the
// backtracking engines that tokenizers use: leftmost, then by the order of the alternatives. A byte that belongs to no UTF-8
// character is a character of its own, and reads as U+FFFD does.
//
// Time is linear in the text, for every pattern whose loops are over one class of characters, as those of tokenizers are: what was
// scanned in vain is not scanned again in the same state.
// Nothing here allocates. A text that comes in pieces is scanned in pieces: Next() says kMore where what follows could change the
// answer.
#ifndef TARN_RUNTIME_TEXT_PATTERN_H_
#define TARN_RUNTIME_TEXT_PATTERN_H_

#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "core/span.h"
#include "runtime/text/code_point.h"

namespace tarn {

// Tables in a model file, checked. A view: the words must outlive it.
class Pattern {
 public:
  Pattern() = default;
  // Proves that no entry of the tables can lead out of them; no later call checks anything.
  // Errors: TARN_BAD_FORMAT (names the table, the entry and the limit), TARN_UNSUPPORTED (another version of the layout).
  static Result<Pattern> Open(Span<const uint16_t> words);

  // The automaton itself: from a state, the first one being start(), over a character or the end of the text. State 0 is dead. What
  // is no code point reads as U+FFFD.
  struct Move {
    uint32_t state;
    bool matched;  // a match ends before the character
  };
  uint32_t start() const { return start_; }
  Move Over(uint32_t state, uint32_t code) const;
  Move OverEnd(uint32_t state) const { return {0, (transitions_[state] & 1) != 0}; }

 private:
  friend class PatternScanner;
  const uint16_t* roots_ = nullptr;
  const uint8_t* leaves_ = nullptr;  // the first is that of ASCII
  const uint16_t* transitions_ = nullptr;
  uint32_t start_ = 0;  // the first entry of the start state
};

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin;
  size_t end;
};

enum class ScanStatus : uint8_t {
  kFound,
  kEnd,   // there are no more
  kMore,  // depends on what follows: Continue() with more text, or with the end
};

// The matches of a pattern, from left to right. None overlap. An empty match directly behind another match is none.
class PatternScanner {
 public:
  PatternScanner() = default;
  // `is_whole`: the text ends with `text`. Else only matches are reported that no further text could change. `by_bytes`: each byte
  // is a character, whose code point is its value.
  PatternScanner(const Pattern& pattern, Span<const char> text, bool is_whole = true, bool by_bytes = false)
      : pattern_(pattern), text_(text), is_whole_(is_whole), by_bytes_(by_bytes) {}

  ScanStatus Next(TextRange* match);

  // Continues in `text`, which is the former text with more behind it and without its first `dropped` bytes; `dropped` is at most
  // needed(). Positions count from the new text.
  void Continue(Span<const char> text, size_t dropped, bool is_whole);
  // The first byte that is still looked at.
  size_t needed() const { return position_; }

 private:
  // A search that was in one state at all positions of [begin, end], and died behind them without a match.
  struct Futile {
    uint32_t state = 0;
    size_t begin = 0;
    size_t end = 0;
  };
  template <bool kAvoids>
  ScanStatus MatchAt(size_t begin, size_t* match_end, size_t* scanned_end) const;
  void NoteFutile(size_t begin, size_t useful_end, size_t scanned_end);
  // The character at `at`, of a text that ends at `end`.
  CodePoint Decode(const uint8_t* at, const uint8_t* end) const;

  Pattern pattern_;
  Span<const char> text_;
  bool is_whole_ = true;
  bool by_bytes_ = false;
  static constexpr size_t kNoMatch = SIZE_MAX;
  size_t position_ = 0;         // where the search goes on
  size_t last_end_ = kNoMatch;  // of the last match
  Futile futile_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_PATTERN_H_
