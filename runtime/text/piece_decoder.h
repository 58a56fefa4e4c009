// Token ids of a tokenizer with tables back to text, one at a time, as the `tokenizers` package decodes them together.
//
// What a token becomes may depend on its neighbours: the first one may lose its space, the last one too, and tokens for single
// bytes in a row become U+FFFD, each, if they are not UTF-8 together. So the state says what was before, and holds back what those
// that come decide.
#ifndef TARN_RUNTIME_TEXT_PIECE_DECODER_H_
#define TARN_RUNTIME_TEXT_PIECE_DECODER_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/utf8.h"

namespace tarn {

// A row of tokens for single bytes that is longer comes out in parts, each of whole characters.
constexpr uint32_t kMaxRunBytes = sizeof(Utf8State::pending);

// The most bytes that may be pending in this state.
uint32_t MaxPending(const Utf8State& state);

// Writes the text that `id` completes, as far as it fits into `text`. Returns how many bytes it has.
size_t DecodePiece(const TokenizerTables& tables, Utf8State* state, uint32_t id, Span<char> text);

// Gives out a row of tokens for single bytes if it is whole characters by now, so that it has come before what follows. Returns the
// number of bytes written, at most kMaxRunBytes.
size_t TakeWholeRun(Utf8State* state, char* text);

// Ends a text and zeroes the state. Returns the number of bytes written, at most 3 * kMaxRunBytes.
size_t FinishPieces(Utf8State* state, char* text);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_PIECE_DECODER_H_
