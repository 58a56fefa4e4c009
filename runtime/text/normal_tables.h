// The tables of a normalizer (normalize_format.h), checked and looked up.
#ifndef TARN_RUNTIME_TEXT_NORMAL_TABLES_H_
#define TARN_RUNTIME_TEXT_NORMAL_TABLES_H_

#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "core/span.h"
#include "runtime/text/charsmap.h"
#include "runtime/text/normalize_format.h"
#include "runtime/text/pattern.h"

namespace tarn {

// Hangul syllables and the letters they are made of: The Unicode Standard, 3.12.
constexpr uint32_t kHangulFirst = 0xAC00, kHangulCount = 11172;
constexpr uint32_t kLFirst = 0x1100, kVFirst = 0x1161, kTFirst = 0x11A7;
constexpr uint32_t kLCount = 19, kVCount = 21, kTCount = 28;

// Code points in the tables: two words each.
class CodeView {
 public:
  CodeView() = default;
  CodeView(const uint16_t* words, size_t size) : words_(words), size_(size) {}
  size_t size() const { return size_; }
  uint32_t operator[](size_t i) const { return words_[2 * i] | static_cast<uint32_t>(words_[2 * i + 1]) << 16; }

 private:
  const uint16_t* words_ = nullptr;
  size_t size_ = 0;
};

struct NormalTables {
  struct Mappings {
    const uint16_t* words = nullptr;
    size_t count = 0;
  };

  // Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED.
  static Result<NormalTables> Open(Span<const uint16_t> words);

  // Combining class and NormalFlags. Of what is no code point: kNormalPlain.
  uint16_t Class(uint32_t code) const {
    if (code >= 0x110000) return kNormalPlain;
    return classes[leaves[roots[code / kNormalLeaf] * kNormalLeaf + code % kNormalLeaf]];
  }
  bool IsPlain(uint32_t code) const { return (Class(code) & kNormalPlain) != 0; }
  // Plain, and combines with none before it.
  bool IsBoundary(uint32_t code) const { return (Class(code) & (kNormalPlain | kNormalCombining)) == kNormalPlain; }
  NormalStepKind kind(size_t step) const { return static_cast<NormalStepKind>(steps[step * kNormalStepWords]); }
  uint16_t argument(size_t step, size_t i) const { return steps[step * kNormalStepWords + 1 + i]; }
  // A number of words, the low half in argument `i`.
  size_t Words(size_t step, size_t i) const { return argument(step, i) | static_cast<size_t>(argument(step, i + 1)) << 16; }
  // What `code` becomes; empty: nothing is known of it.
  CodeView Map(const Mappings& mappings, uint32_t code) const;
  // 0: they do not compose.
  uint32_t Compose(uint32_t first, uint32_t second) const;
  CodeView Text(size_t first, size_t count) const { return {texts + 2 * first, count}; }

  size_t step_count = 0, text_count = 0, composition_count = 0, class_count = 0;
  const uint16_t* steps = nullptr;
  const uint16_t* roots = nullptr;
  const uint8_t* leaves = nullptr;
  const uint16_t* classes = nullptr;
  Mappings canonical, compatibility, lowercase;
  const uint16_t* compositions = nullptr;
  const uint16_t* texts = nullptr;
  Pattern patterns[kMaxNormalSteps];  // of the steps that have one
  Pattern clusters;                   // kCharsMap: a match is a grapheme cluster
  CharsMap charsmap;
  bool has_charsmap = false;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_NORMAL_TABLES_H_
