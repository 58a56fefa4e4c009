// What a terminal may be shown of a text that came from a file: names, paths, numbers.
#ifndef TARN_CORE_VISIBLE_H_
#define TARN_CORE_VISIBLE_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// Control characters, line and paragraph separators, and characters of Unicode's category Cf that hide or reorder the text beside
// them (bidirectional overrides and isolates, zero widths, tags).
inline bool IsVisible(uint32_t code_point) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kHidden[] = {{0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD},  {0x061C, 0x061C},
                               {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F},
                               {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};
  for (const Range& range : kHidden) {
    if (code_point >= range.first && code_point <= range.last) return false;
  }
  return true;
}

// A file that begins with such bytes is a text, whatever it was taken for: printable ASCII and white space.
inline bool LooksLikeText(const uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if ((bytes[i] < ' ' || bytes[i] > '~') && (bytes[i] < '\t' || bytes[i] > '\r')) return false;
  }
  return true;
}

// The bytes of the character that `text` begins with, 1 to 4; 0, and `code_point` is left alone: none, its first byte begins no
// well-formed UTF-8.
inline size_t DecodeUtf8(const char* text, size_t text_bytes, uint32_t* code_point) {
  if (text_bytes == 0) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || length > text_bytes) return 0;
  uint32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // below: an overlong form
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[length] || value > 0x10FFFF || surrogate) return 0;
  *code_point = value;
  return length;
}

// The bytes of the character that `text` begins with, if it is visible; 0: it is not, or no well-formed UTF-8 (a terminal of 8 bits
// takes such a byte for a control character: 0x9B for the two bytes ESC [).
inline size_t VisibleBytes(const char* text, size_t text_bytes) {
  uint32_t code_point = 0;
  const size_t length = DecodeUtf8(text, text_bytes, &code_point);
  return IsVisible(code_point) ? length : 0;
}

}  // namespace tarn

#endif  // TARN_CORE_VISIBLE_H_
