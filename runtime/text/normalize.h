// Normalizers of tokenizer.json: Unicode normalization forms, lowercase, stripped accents, replaced and prepended text, charsmaps.
//
// A normalizer is a list of steps that tarn-convert compiled into tables (normalize_format.h), with the data that these steps need
// and no more. Text goes through it piece by piece. Working memory is bounded and given by the caller; nothing here allocates.
//
// Every byte of the output has a range of the input that it comes from, as the `tokenizers` package says it: what a step puts in
// has the range of its neighbour, and all bytes of a character have the same range. Bytes that belong to no UTF-8 character stay as
// they are. Where more than kMaxFormRun combining marks follow one character, they are ordered in groups of that many.
#ifndef TARN_RUNTIME_TEXT_NORMALIZE_H_
#define TARN_RUNTIME_TEXT_NORMALIZE_H_

#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "core/span.h"
#include "runtime/text/charsmap_step.h"
#include "runtime/text/normal_step.h"
#include "runtime/text/normal_tables.h"
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
  // How many of the first bytes of `text` come out as they are, whatever follows; of a whole text that is normalized already, all
  // of them if `is_whole`, and if no step puts text in. A fast scan: most texts need no more than this.
  size_t UnchangedPrefix(Span<const char> text, bool is_whole = true) const;

 private:
  friend class NormalizedText;
  size_t step_words(size_t step) const;
  bool Has(NormalStepKind kind) const;
  bool HasStrip(size_t side) const;
  // Some step treats the first character of a text as none else.
  bool has_begin() const { return Has(NormalStepKind::kPrepend) || HasStrip(0); }
  size_t PlainPrefix(Span<const char> text, bool is_whole) const;

  NormalTables tables_;
  bool ascii_is_plain_ = false;
};

// The normalized form of one text, piece by piece.
class NormalizedText {
 public:
  // `working`: normalizer.working_words() of them. Text, tables and words must outlive it.
  NormalizedText(const Normalizer& normalizer, Span<const char> text, Span<uint32_t> working);

  // Writes the next bytes, and where each comes from, to the beginning of both; they have one size, of at least 4. Never half a
  // character. Returns how many; 0 at the end.
  size_t Read(Span<char> bytes, Span<TextRange> origins);

 private:
  void MakeSteps();
  // The character at `at`, or kBadByte + the byte there.
  uint32_t CodeAt(size_t at) const;
  bool MayDrift() const;
  // The next character behind the first `steps` steps: each takes from the one before it, the first one from the text.
  bool Take(size_t steps, NormalChar* c);
  bool TakeFromText(NormalChar* c);
  static bool TakePutIn(NormalStep* step, NormalChar* c);
  // Of a NormalForm or a CharsMapStep.
  template <typename Form>
  bool TakeForm(size_t step, Form* form, NormalChar* c);
  bool TakeLowercase(size_t step, NormalChar* c);
  bool TakeBytes(size_t step, NormalChar* c);
  bool TakePrepended(size_t step, NormalChar* c);
  bool TakeReplaced(size_t step, NormalChar* c);
  bool TakeReplacedMatches(size_t step, NormalChar* c);
  bool FindMatch(size_t step, NormalChar* last);
  bool TakeStripped(size_t step, NormalChar* c);
  size_t LastSegment() const;
  void CountKept();
  void BeginSegment();
  size_t CopyUnchanged(Span<char> bytes, Span<TextRange> origins);

  Normalizer normalizer_;
  Span<const char> text_;
  Span<uint32_t> working_;
  size_t at_ = 0;
  // Text that steps change is cut into segments, each normalized by itself: at characters that no step changes, that combine with
  // none before them, and that are behind such a character. The first one goes on until a character has come out, where a step
  // waits for the first one; the last one begins at last_segment_, where a step strips the end of a text.
  bool in_segment_ = false;
  bool segment_has_text_ = false;
  bool is_behind_plain_ = false;  // the last character of the segment is one that no step changes
  bool has_begun_ = false;
  size_t last_segment_ = SIZE_MAX;
  bool has_steps_ = false;
  bool has_held_ = false;  // held_ did not fit the caller's buffer
  NormalChar held_ = {0, {0, 0}};
  NormalStep steps_[kMaxNormalSteps];
  CharsMapStep charsmap_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_NORMALIZE_H_
