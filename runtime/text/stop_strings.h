// Finds the first stop string in a text that comes byte by byte, and holds back the text that may still become one.
//
// What is held back is always the begin of a stop string (the longest one that the text ends with), so that no text is kept: only
// how many bytes of each stop string the text ends with, by the algorithm of Knuth, Morris and Pratt.
#ifndef TARN_RUNTIME_TEXT_STOP_STRINGS_H_
#define TARN_RUNTIME_TEXT_STOP_STRINGS_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "core/status.h"

namespace tarn {

// Same layout as tarn_stop_string.
struct StopString {
  const char* text;
  size_t text_bytes;
};

constexpr size_t kMostStopStrings = 256;
constexpr size_t kMostStopStringBytes = size_t{1} << 16;

// Errors: TARN_INVALID_ARGUMENT: too many of them; one that is empty, too long or not UTF-8, by its index.
Status CheckStopStrings(Span<const StopString> strings);

class StopFinder {
 public:
  // Copies `strings`, which were checked; only counts when `bump` has no block. With `keep` the stop string is text too.
  void TakeArrays(Bump* bump, Span<const StopString> strings, bool keep);

  // Takes a byte of the text. Writes the text that no stop string can take any more to `out`, which has room for max_bytes(), and
  // returns its length. After a stop string nothing comes out.
  size_t Feed(char byte, char* out);
  // Ends the text: writes what was held back.
  size_t Finish(char* out);
  // Begins a text.
  void Reset();

  // What it carries from byte to byte, in state_bytes() at any alignment. Restore() takes what Save() wrote for the same strings.
  size_t state_bytes() const { return sizeof(Progress) + patterns_.size() * sizeof(uint32_t); }
  void Save(uint8_t* state) const;
  void Restore(const uint8_t* state);

  // The stop string that was found; -1: none.
  int32_t found() const { return found_; }
  size_t max_bytes() const { return longest_ == 0 ? 1 : longest_; }

 private:
  struct Pattern {
    Span<char> text;
    Span<uint32_t> borders;  // [i]: the length of the longest proper begin of text[0..i] that is its end too
    uint32_t matched = 0;    // how much of it the text ends with

    void FindBorders();
    uint32_t Next(uint32_t length, char byte) const;
  };

  // As in Save().
  struct Progress {
    int64_t holder;  // a pattern; -1: none
    uint64_t held;
    int64_t found;
  };

  Span<Pattern> patterns_;
  size_t longest_ = 0;
  bool keep_ = false;
  int32_t found_ = -1;
  const Pattern* holder_ = nullptr;  // whose begin is held back
  size_t held_ = 0;                  // bytes of it
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_STOP_STRINGS_H_
