#include "runtime/grammar/utf8_ranges.h"

#include <algorithm>

#include "runtime/text/code_point.h"

namespace tarn {

bool Utf8Ranges::Next(ByteRanges* out) {
  constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;
  if (low_ >= kFirstSurrogate && low_ <= kLastSurrogate) low_ = kLastSurrogate + 1;
  if (low_ > high_) return false;
  const auto low = static_cast<uint32_t>(low_);
  auto high = static_cast<uint32_t>(high_);
  if (low < kFirstSurrogate) high = std::min(high, kFirstSurrogate - 1);
  // Texts of one length.
  for (const uint32_t last : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (low <= last) high = std::min(high, last);
  }
  // Up to byte i the texts are equal; from there on a sequence has all continuation bytes, or the range is cut where it does not.
  for (uint32_t bits = 6; low > 0x7F && bits <= 18; bits += 6) {
    const uint32_t mask = (1u << bits) - 1;
    if ((low & ~mask) == (high & ~mask)) break;
    if ((low & mask) != 0) {
      high = low | mask;
      break;
    }
    if ((high & mask) != mask) high = (high & ~mask) - 1;
  }
  char first[4] = {}, last[4] = {};
  out->length = static_cast<uint8_t>(EncodeCodePoint(low, first));
  EncodeCodePoint(high, last);
  std::copy_n(first, 4, out->low);
  std::copy_n(last, 4, out->high);
  low_ = uint64_t{high} + 1;
  return true;
}

}  // namespace tarn
