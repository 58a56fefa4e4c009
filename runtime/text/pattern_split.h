// Splits text at the matches of a pattern, as the `Split` of tokenizer.json does.
#ifndef TARN_RUNTIME_TEXT_PATTERN_SPLIT_H_
#define TARN_RUNTIME_TEXT_PATTERN_SPLIT_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/pattern.h"

namespace tarn {

// What becomes of a match, as in the `Split` of tokenizer.json.
enum class SplitBehavior : uint8_t {
  kRemoved = 0,
  kIsolated = 1,
  kMergedWithPrevious = 2,
  kMergedWithNext = 3,
  kContiguous = 4,  // neighbouring matches are one piece
};

// The pieces that `Split` makes of a text, in order, empty ones left out. With `invert`, what lies between matches is split off.
class Splitter {
 public:
  Splitter() = default;
  Splitter(const Pattern& pattern, SplitBehavior behavior, bool invert, Span<const char> text, bool is_whole = true,
           bool by_bytes = false)
      : scanner_(pattern, text, is_whole, by_bytes), text_bytes_(text.size()), behavior_(behavior), invert_(invert) {}

  ScanStatus Next(TextRange* piece);
  // As PatternScanner's.
  void Continue(Span<const char> text, size_t dropped, bool is_whole);
  size_t needed() const;

 private:
  // A match, or what lies between two; with `invert`, `is_match` is the opposite.
  struct Part {
    TextRange range;
    bool is_match;
  };
  ScanStatus NextPart(Part* part);
  ScanStatus NextMerged(TextRange* piece);
  bool MayGrow() const;
  bool Takes(const Part& next) const;

  PatternScanner scanner_;
  size_t text_bytes_ = 0;
  SplitBehavior behavior_ = SplitBehavior::kIsolated;
  bool invert_ = false;
  bool is_scanned_ = false;  // there are no more matches
  bool has_match_ = false;   // match_ is not yet a part
  bool has_current_ = false;
  TextRange match_ = {};
  size_t part_end_ = 0;  // of the last part
  Part current_ = {};    // to which following parts may be added
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_PATTERN_SPLIT_H_
