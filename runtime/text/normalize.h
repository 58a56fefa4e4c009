// Normalizers of tokenizer.json: Unicode normalization forms, lowercase, stripped accents, replaced and prepended text.
//
// A normalizer is a list of steps that tarn-convert compiled into tables, with the data that these steps need and no more. Text goes
// through it in pieces of any size. Working memory is bounded and given by the caller; nothing here allocates.
//
// Every byte of the output has a range of the input that it comes from, as the `tokenizers` package says it: what a step puts in has
// the range of its neighbour, and all bytes of a character have the same range. Ranges of neighbours may be equal.
#ifndef TARN_RUNTIME_TEXT_NORMALIZE_H_
#define TARN_RUNTIME_TEXT_NORMALIZE_H_

#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "core/span.h"
#include "runtime/text/pattern.h"

namespace tarn {

// Tables in a model file, checked. A view: the words must outlive it.
class Normalizer {
 public:
  // Without steps: leaves every text as it is.
  Normalizer() = default;
  // Errors: TARN_BAD_FORMAT (names the table, the entry and the limit), TARN_UNSUPPORTED (another version of the layout).
  static Result<Normalizer> Open(Span<const uint16_t> words);

  // The number of 4-byte words that a NormalizedText of it works in.
  size_t working_words() const;
  // How many of the first bytes of `text` come out as they are, whatever follows; at least all of a text that is normalized already
  // if `text` is a whole text and no step puts text in. A fast scan: most texts need no more than this.
  size_t UnchangedPrefix(Span<const char> text) const;
};

// The normalized form of one text, piece by piece.
class NormalizedText {
 public:
  // `working`: normalizer.working_words() of them. Text, normalizer and words must outlive it.
  NormalizedText(const Normalizer& normalizer, Span<const char> text, Span<uint32_t> working);

  // Writes the next bytes, and where each comes from, to the beginning of both; they have one size, of at least 4. Never half a
  // character. Returns how many; 0 at the end.
  size_t Read(Span<char> bytes, Span<TextRange> origins);
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_NORMALIZE_H_
