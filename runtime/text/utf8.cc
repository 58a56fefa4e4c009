#include "runtime/text/utf8.h"

#include <cstring>

namespace tarn {
namespace {

// What a lead byte announces: the length of its character and the range of the second byte (all later ones are 80..BF).
struct Lead {
  uint8_t length;  // 0: no character begins with this byte
  uint8_t second_min;
  uint8_t second_max;
};

// Unicode, table 3-7 (well-formed UTF-8 byte sequences).
Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};  // continuation bytes; C0 and C1 could only begin overlong forms
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // below: overlong
  if (byte == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};  // below: overlong
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // above: past U+10FFFF
  return {0, 0, 0};
}

size_t WriteReplacement(char* out) {
  std::memcpy(out, "\xEF\xBF\xBD", 3);
  return 3;
}

// The byte as the first of a character.
size_t Begin(Utf8State* state, uint8_t byte, char* out) {
  const Lead lead = LeadOf(byte);
  if (lead.length == 0) return WriteReplacement(out);
  if (lead.length == 1) {
    out[0] = static_cast<char>(byte);
    return 1;
  }
  state->pending[0] = byte;
  state->pending_bytes = 1;
  return 0;
}

bool Continues(const Utf8State& state, uint8_t byte) {
  if (state.pending_bytes > 1) return byte >= 0x80 && byte <= 0xBF;
  const Lead lead = LeadOf(state.pending[0]);
  return byte >= lead.second_min && byte <= lead.second_max;
}

}  // namespace

size_t Utf8Feed(Utf8State* state, uint8_t byte, char* out) {
  if (state->pending_bytes == 0) return Begin(state, byte, out);
  if (!Continues(*state, byte)) {
    const size_t written = Utf8Finish(state, out);
    return written + Begin(state, byte, out + written);
  }
  state->pending[state->pending_bytes++] = byte;
  // `>=`: a state that is not of this decoder's making must not grow past its buffer.
  if (state->pending_bytes >= LeadOf(state->pending[0]).length) {
    const size_t length = state->pending_bytes;
    std::memcpy(out, state->pending, length);
    state->pending_bytes = 0;
    return length;
  }
  return 0;
}

size_t Utf8Finish(Utf8State* state, char* out) {
  const bool incomplete = state->pending_bytes != 0;
  state->pending_bytes = 0;
  return incomplete ? WriteReplacement(out) : 0;
}

}  // namespace tarn
