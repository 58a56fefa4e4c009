#include "runtime/text/code_point.h"

namespace tarn {
namespace {

// What a lead byte announces: length of its character and range of the second byte. Unicode, table 3-7.
struct Lead {
  uint32_t length;  // 0: no character begins with this byte
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) return {3, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80), static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  return {4, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80), static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
}

char Byte(uint32_t bits) { return static_cast<char>(bits); }

}  // namespace

CodePoint DecodeCodePoint(const uint8_t* at, const uint8_t* end) {
  const CodePoint none = {kReplacementCode, 1, false, false};
  const Lead lead = LeadOf(at[0]);
  if (lead.length == 0) return none;
  if (lead.length == 1) return {at[0], 1, true, false};
  const size_t there = static_cast<size_t>(end - at);
  uint32_t code = at[0] & (0x7Fu >> lead.length);
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (i == there) return {kReplacementCode, 1, false, true};
    const uint8_t low = i == 1 ? lead.second_min : uint8_t{0x80}, high = i == 1 ? lead.second_max : uint8_t{0xBF};
    if (at[i] < low || at[i] > high) return none;
    code = code << 6 | (at[i] & 0x3Fu);
  }
  return {code, lead.length, true, false};
}

size_t EncodeCodePoint(uint32_t code, char* out) {
  if (code < 0x80) {
    out[0] = Byte(code);
    return 1;
  }
  const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; --i, code >>= 6) out[i] = Byte(0x80 | (code & 0x3F));
  out[0] = Byte((0xF00u >> length & 0xF0) | code);
  return length;
}

}  // namespace tarn
