// The charsmap of a normalizer: strings of bytes and the text that replaces each, as SentencePiece writes them. Little-endian
// 16-bit words, used in place:
//
//   header  [kCharsMapHeaderWords]: units low, units high, bytes low, bytes high
//   units   [units] of two words, the low one first: a double array. From node n an edge of byte b leads to base(n) ^ b, if the low
//           byte and bit 31 of the unit there are b. base(n) is n ^ (bits 10 to 30, shifted left by 8 if bit 9 is set). With bit 8,
//           a string ends at n, and bits 0 to 30 of unit base(n) say where its text begins.
//   texts   [bytes], filled up to a whole word: UTF-8, each text ends with a zero
#ifndef TARN_RUNTIME_TEXT_CHARSMAP_H_
#define TARN_RUNTIME_TEXT_CHARSMAP_H_

#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "core/span.h"

namespace tarn {

constexpr size_t kCharsMapHeaderWords = 4;
constexpr size_t kCharsMapBlock = 256;  // units come in blocks of it, so that no edge leads out of them
constexpr size_t kMaxCharsMapUnits = 1u << 24;
constexpr size_t kMaxCharsMapText = 1u << 8;  // bytes of one text

// Tables in a model file, checked. A view: the words must outlive it.
class CharsMap {
 public:
  CharsMap() = default;  // without strings
  // Proves that no unit leads out of the tables; no later call checks anything.
  // Errors: TARN_BAD_FORMAT (names the entry and the limit).
  static Result<CharsMap> Open(Span<const uint16_t> words);

  // The text of the shortest string that `bytes` begin with. False: there is none.
  bool FindShortest(Span<const char> bytes, Span<const char>* text) const;
  // Code points of the longest text.
  size_t MostCodes() const { return most_codes_; }

 private:
  uint32_t Unit(size_t i) const { return units_[2 * i] | static_cast<uint32_t>(units_[2 * i + 1]) << 16; }
  static size_t Base(size_t node, uint32_t unit) { return node ^ (size_t{(unit >> 10) & 0x1FFFFF} << ((unit & 0x200) >> 6)); }
  Status CheckUnits(size_t count, size_t text_bytes) const;
  Status CheckTexts(size_t bytes);

  const uint16_t* units_ = nullptr;
  const char* texts_ = nullptr;
  size_t most_codes_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_CHARSMAP_H_
