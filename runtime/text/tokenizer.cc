#include "runtime/text/tokenizer.h"

#include <algorithm>
#include <cstring>

namespace tarn {
namespace {

constexpr uint32_t kByteTokens = 256;

Status NoTokenizer() { return Error(TARN_UNSUPPORTED, "the model has no tokenizer: it takes and gives token ids only"); }

}  // namespace

Status Tokenize(TokenizerKind kind, Span<const char> text, Span<int32_t> tokens, size_t* count) {
  if (kind == TokenizerKind::kNone) return NoTokenizer();
  const size_t written = std::min(text.size(), tokens.size());
  for (size_t i = 0; i < written; ++i) tokens[i] = static_cast<uint8_t>(text[i]);
  *count = text.size();
  if (written < text.size()) {
    return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu tokens, the text has %zu", tokens.size(), text.size());
  }
  return Ok();
}

Status Decode(TokenizerKind kind, uint32_t vocab_size, Utf8State* state, int32_t token, Span<char> text, size_t* text_bytes) {
  if (kind == TokenizerKind::kNone) return NoTokenizer();
  const uint32_t limit = std::min(vocab_size, kByteTokens);
  if (token < 0 || static_cast<uint32_t>(token) >= limit) {
    return Error(TARN_INVALID_ARGUMENT, "token is %d, must be in [0, %u)", token, limit);
  }
  if (state->pending_bytes > kMaxUtf8Pending) {
    return Error(TARN_INVALID_ARGUMENT, "the text decoder's pending_bytes is %u, at most %u: zero it to begin a text",
                 state->pending_bytes, kMaxUtf8Pending);
  }
  Utf8State next = *state;
  char piece[kMaxUtf8Bytes];
  const size_t size = Utf8Feed(&next, static_cast<uint8_t>(token), piece);
  if (size > text.size()) {
    return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu bytes, the text of token %d has %zu", text.size(), token, size);
  }
  if (size != 0) std::memcpy(text.data(), piece, size);
  *text_bytes = size;
  *state = next;
  return Ok();
}

size_t MaxPieceBytes(TokenizerKind) { return kMaxUtf8Bytes; }

}  // namespace tarn
