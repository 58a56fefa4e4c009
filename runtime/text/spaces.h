// Characters with the Unicode property White_Space, and steps from character to character.
#ifndef TARN_RUNTIME_TEXT_SPACES_H_
#define TARN_RUNTIME_TEXT_SPACES_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"

namespace tarn {

constexpr size_t kMaxCharacterBytes = 4;
constexpr size_t kMaxSpaceBytes = 3;

// Bytes of the space that `text` begins with; 0: it begins with none.
inline size_t SpaceBytes(Span<const char> text) {
  if (text.empty()) return 0;
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0), second = byte(1), third = byte(2);
  if ((first >= 0x09 && first <= 0x0D) || first == 0x20) return 1;
  if (first == 0xC2) return second == 0x85 || second == 0xA0 ? 2 : 0;
  if (first == 0xE1) return second == 0x9A && third == 0x80 ? 3 : 0;  // U+1680
  if (first == 0xE3) return second == 0x80 && third == 0x80 ? 3 : 0;  // U+3000
  if (first != 0xE2) return 0;
  if (second == 0x80) return (third >= 0x80 && third <= 0x8A) || third == 0xA8 || third == 0xA9 || third == 0xAF ? 3 : 0;
  return second == 0x81 && third == 0x9F ? 3 : 0;  // U+205F
}

inline bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Where the character that has byte `at` begins, and where it ends. Of bytes that are no UTF-8 a run of up to three continuation
// bytes goes with what is before it.
inline size_t CharacterBegin(Span<const char> text, size_t at) {
  for (int i = 0; i < 3 && at > 0 && IsContinuation(text[at]); ++i) --at;
  return at;
}
inline size_t CharacterEnd(Span<const char> text, size_t at) {
  ++at;
  for (int i = 0; i < 3 && at < text.size() && IsContinuation(text[at]); ++i) ++at;
  return at;
}

// Bytes of the space that `text` ends with; 0: it ends with none.
inline size_t SpaceBytesAtEnd(Span<const char> text) {
  if (text.empty()) return 0;
  const size_t begin = CharacterBegin(text, text.size() - 1);
  const size_t bytes = SpaceBytes(text.subspan(begin, text.size() - begin));
  return begin + bytes == text.size() ? bytes : 0;
}

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_SPACES_H_
