#include "runtime/text/charsmap.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/code_point.h"
#include "runtime/text/spaces.h"

namespace tarn {
namespace {

constexpr uint32_t kNoEdge = uint32_t{1} << 31;
constexpr uint32_t kLabel = kNoEdge | 0xFF;
constexpr uint32_t kEndsHere = 1 << 8;

}  // namespace

Status CharsMap::CheckUnits(size_t count, size_t text_bytes) const {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t unit = Unit(i);
    if ((unit & kNoEdge) != 0) continue;  // no edge leads to it, so that none is followed from it
    const size_t base = Base(i, unit);
    if (base >= count) return Error(TARN_BAD_FORMAT, "charsmap: unit %zu leads to unit %zu of %zu", i, base, count);
    if ((unit & kEndsHere) == 0) continue;
    const size_t text = Unit(base) & ~kNoEdge;
    if (text >= text_bytes || IsContinuation(texts_[text])) {
      return Error(TARN_BAD_FORMAT, "charsmap: the text of unit %zu begins at byte %zu of %zu, where none begins", i, text,
                   text_bytes);
    }
  }
  return Ok();
}

Status CharsMap::CheckTexts(size_t bytes) {
  const auto* const first = reinterpret_cast<const uint8_t*>(texts_);
  if (bytes == 0 || first[bytes - 1] != 0)
    return Error(TARN_BAD_FORMAT, "charsmap: its %zu bytes of text do not end with a zero", bytes);
  size_t begin = 0, codes = 0;
  for (size_t at = 0; at < bytes;) {
    const CodePoint c = DecodeCodePoint(first + at, first + bytes);
    if (!c.is_valid) return Error(TARN_BAD_FORMAT, "charsmap: byte %zu of its texts is not UTF-8", at);
    at += c.bytes;
    ++codes;
    if (c.code != 0) continue;
    if (at - begin > kMaxCharsMapText) {
      return Error(TARN_BAD_FORMAT, "charsmap: the text at byte %zu has %zu bytes, at most %zu expected", begin, at - begin - 1,
                   kMaxCharsMapText - 1);
    }
    most_codes_ = std::max(most_codes_, codes - 1);
    begin = at;
    codes = 0;
  }
  return Ok();
}

Result<CharsMap> CharsMap::Open(Span<const uint16_t> words) {
  if (words.size() < kCharsMapHeaderWords) {
    return Error(TARN_BAD_FORMAT, "charsmap: it has %zu words, a header has %zu", words.size(), kCharsMapHeaderWords);
  }
  const uint64_t units = words[0] | uint64_t{words[1]} << 16, bytes = words[2] | uint64_t{words[3]} << 16;
  if (units == 0 || units % kCharsMapBlock != 0 || units > kMaxCharsMapUnits) {
    return Error(TARN_BAD_FORMAT, "charsmap: it has %llu units, a multiple of %zu up to %zu expected",
                 static_cast<unsigned long long>(units), kCharsMapBlock, kMaxCharsMapUnits);
  }
  if (words.size() != kCharsMapHeaderWords + 2 * units + (bytes + 1) / 2) {
    return Error(TARN_BAD_FORMAT, "charsmap: it has %zu words, which its header does not say", words.size());
  }
  CharsMap map;
  map.units_ = words.data() + kCharsMapHeaderWords;
  map.texts_ = reinterpret_cast<const char*>(map.units_ + 2 * units);
  TARN_RETURN_IF_ERROR(map.CheckTexts(static_cast<size_t>(bytes)));
  TARN_RETURN_IF_ERROR(map.CheckUnits(static_cast<size_t>(units), static_cast<size_t>(bytes)));
  return map;
}

bool CharsMap::FindShortest(Span<const char> bytes, Span<const char>* text) const {
  uint32_t unit = Unit(0);
  if ((unit & kNoEdge) != 0) return false;
  size_t node = 0;
  for (const char byte : bytes) {
    const auto label = static_cast<uint8_t>(byte);
    if (label == 0) return false;
    node = Base(node, unit) ^ label;
    unit = Unit(node);
    if ((unit & kLabel) != label) return false;
    if ((unit & kEndsHere) == 0) continue;
    const char* const begin = texts_ + (Unit(Base(node, unit)) & ~kNoEdge);
    *text = {begin, std::strlen(begin)};
    return true;
  }
  return false;
}

}  // namespace tarn
