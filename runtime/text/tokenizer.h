// Text to token ids and back. A kind of tokenizer is one value of TokenizerKind and one case of each function here.
#ifndef TARN_RUNTIME_TEXT_TOKENIZER_H_
#define TARN_RUNTIME_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/text/utf8.h"

namespace tarn {

// Numbers are those of tarn_tokenizer_kind.
enum class TokenizerKind : uint8_t {
  kNone = 0,   // ids only
  kBytes = 1,  // id = byte value
};

// Writes the first `tokens.size()` ids of the text and sets `*count` to the number of all.
// Errors: TARN_UNSUPPORTED (no tokenizer), TARN_BUFFER_TOO_SMALL (`*count` is set).
Status Tokenize(TokenizerKind kind, Span<const char> text, Span<int32_t> tokens, size_t* count);

// Writes the text that `token` completes to `text` and sets `*text_bytes`; MaxPieceBytes() are always enough.
// Errors: TARN_UNSUPPORTED, TARN_INVALID_ARGUMENT (token or state out of range), TARN_BUFFER_TOO_SMALL. The state is then
// unchanged.
Status Decode(TokenizerKind kind, uint32_t vocab_size, Utf8State* state, int32_t token, Span<char> text, size_t* text_bytes);

// Most bytes that one Decode() or one Utf8Finish() writes.
size_t MaxPieceBytes(TokenizerKind kind);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_TOKENIZER_H_
