// Bytes in, whole UTF-8 characters out, a byte at a time.
//
// What is not UTF-8 becomes U+FFFD, one for each maximal subpart of a character (the WHATWG decoder's rule; Unicode 3.9,
// "U+FFFD Substitution of Maximal Subparts"): overlong forms, surrogates and code points above U+10FFFF never come out.
#ifndef TARN_RUNTIME_TEXT_UTF8_H_
#define TARN_RUNTIME_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// A character that has begun, and what else a decoder of tokens keeps (piece_decoder.h). All-zero is the start of a text. Same
// layout as tarn_text_decoder.
struct Utf8State {
  uint8_t pending[24];
  uint32_t pending_bytes;  // [0, kMaxUtf8Pending] of a character
  uint32_t flags;          // of piece_decoder.cc
};

constexpr uint32_t kMaxUtf8Pending = 3;

// Most bytes that one call of Utf8Feed() writes: U+FFFD for what was pending, and U+FFFD for the byte itself.
constexpr size_t kMaxUtf8Bytes = 6;

// Takes one byte and writes the text that it completes to `out`. Returns the number of bytes written.
size_t Utf8Feed(Utf8State* state, uint8_t byte, char* out);

// Ends a run of bytes: writes U+FFFD if a character is incomplete, and nothing is pending then. Returns the number of bytes
// written.
size_t Utf8Finish(Utf8State* state, char* out);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_UTF8_H_
