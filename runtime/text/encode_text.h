// A whole text to token ids in one call.
#ifndef TARN_RUNTIME_TEXT_ENCODE_TEXT_H_
#define TARN_RUNTIME_TEXT_ENCODE_TEXT_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/span.h"
#include "core/status.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

// Writes the first `tokens.size()` ids of the text, and sets `*count` to the number of all. Takes an Encoder of `allocator` for the
// call. Errors: TARN_BUFFER_TOO_SMALL (`*count` is set; 0: a word is longer than 1 MiB), TARN_OUT_OF_MEMORY, TARN_UNSUPPORTED (a
// build without an operating system).
Status EncodeText(const TokenizerTables& tables, Span<const char> text, const Allocator& allocator, Span<int32_t> tokens,
                  size_t* count);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_ENCODE_TEXT_H_
