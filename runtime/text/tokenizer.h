// Token ids back to text, and bytes to ids. (Text to ids by the tables of a model: encoder.h)
#ifndef TARN_RUNTIME_TEXT_TOKENIZER_H_
#define TARN_RUNTIME_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/text/tokenizer_tables.h"
#include "runtime/text/utf8.h"

namespace tarn {

// For a tokenizer without tables: writes the first `tokens.size()` ids of the text and sets `*count` to the number of all.
// Errors: TARN_UNSUPPORTED (no tokenizer), TARN_BUFFER_TOO_SMALL (`*count` is set).
Status Tokenize(TokenizerKind kind, Span<const char> text, Span<int32_t> tokens, size_t* count);

// Errors: TARN_BUFFER_TOO_SMALL, where a text has more tokens than there is room for.
Status CheckCapacity(size_t tokens, size_t capacity);

// Writes the text that `token` completes to `text` and sets `*text_bytes`; MaxPieceBytes() are always enough.
// Errors: TARN_UNSUPPORTED (no tokenizer), TARN_INVALID_ARGUMENT (token or state out of range), TARN_BUFFER_TOO_SMALL. The state is
// then unchanged.
Status Decode(const TokenizerTables& tables, Utf8State* state, int32_t token, Span<char> text, size_t* text_bytes);

// Most bytes that one Decode() or one Utf8Finish() writes.
size_t MaxPieceBytes(const TokenizerTables& tables);

// The token stands for no text of its own: the begin or the end of a text, a mask. False for ids that the tokenizer does not have.
bool IsSpecial(const TokenizerTables& tables, int32_t token);

// Bytes of text that the token stands for; 0 for a special one.
size_t TokenBytes(const TokenizerTables& tables, int32_t token);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_TOKENIZER_H_
