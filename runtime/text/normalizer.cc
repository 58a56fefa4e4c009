#include <cstring>

#include "runtime/text/code_point.h"
#include "runtime/text/normalize.h"
#include "runtime/text/spaces.h"

namespace tarn {
namespace {

// Working memory of one step.
size_t StepWords(NormalStepKind kind) {
  if (kind == NormalStepKind::kForm) return NormalForm::kWords;
  if (kind == NormalStepKind::kCharsMap) return CharsMapStep::kWords;
  if (kind == NormalStepKind::kBytes) return kMaxCharacterBytes * NormalQueue::kWords;
  const bool waits =
      kind == NormalStepKind::kReplace || kind == NormalStepKind::kReplaceMatches || kind == NormalStepKind::kSurroundMatches;
  return waits ? kMaxReplacedCodes * NormalQueue::kWords : 0;
}

}  // namespace

Result<Normalizer> Normalizer::Open(Span<const uint16_t> words) {
  Normalizer normalizer;
  TARN_ASSIGN_OR_RETURN(normalizer.tables_, NormalTables::Open(words));
  normalizer.ascii_is_plain_ = true;
  for (uint32_t code = 0; code < 0x80; ++code) {
    normalizer.ascii_is_plain_ = normalizer.ascii_is_plain_ && normalizer.tables_.IsBoundary(code);
  }
  return normalizer;
}

size_t Normalizer::working_words() const {
  size_t words = 0;
  for (size_t i = 0; i < tables_.step_count; ++i) words += step_words(i);
  return words;
}

size_t Normalizer::step_words(size_t step) const { return StepWords(tables_.kind(step)); }

bool Normalizer::Has(NormalStepKind kind) const {
  for (size_t i = 0; i < tables_.step_count; ++i) {
    if (tables_.kind(i) == kind) return true;
  }
  return false;
}

// At the begin (0) or at the end (1) of a text.
bool Normalizer::HasStrip(size_t side) const {
  for (size_t i = 0; i < tables_.step_count; ++i) {
    if (tables_.kind(i) == NormalStepKind::kStrip && tables_.argument(i, side) != 0) return true;
  }
  return false;
}

size_t Normalizer::UnchangedPrefix(Span<const char> text, bool is_whole) const {
  if (tables_.step_count == 0) return text.size();
  if (Has(NormalStepKind::kPrepend)) return 0;
  return PlainPrefix(text, is_whole);
}

size_t Normalizer::PlainPrefix(Span<const char> text, bool is_whole) const {
  const auto* const first = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = first + text.size();
  const uint8_t* boundary = first;  // the last character that combines with none before it
  uint16_t last_combining = 0;
  for (const uint8_t* at = first; at != end;) {
    if (ascii_is_plain_ && *at < 0x80) {
      // Eight at once.
      for (uint64_t eight; end - at >= 8; at += 8) {
        std::memcpy(&eight, at, sizeof(eight));
        if ((eight & 0x8080808080808080u) != 0) break;
      }
      while (at != end && *at < 0x80) ++at;
      boundary = at - 1;
      last_combining = 0;
      continue;
    }
    const CodePoint c = DecodeCodePoint(at, end);
    if (c.is_cut && !is_whole) break;
    const uint16_t of = c.is_valid ? tables_.Class(c.code) : uint16_t{kNormalPlain};
    const uint16_t combining = of & kNormalCombining;
    if ((of & kNormalPlain) == 0 || (combining != 0 && combining < last_combining)) {
      return static_cast<size_t>(boundary - first);
    }
    if (combining == 0) boundary = at;
    last_combining = combining;
    at += c.bytes;
  }
  return is_whole ? text.size() : static_cast<size_t>(boundary - first);
}

}  // namespace tarn
