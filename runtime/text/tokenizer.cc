#include "runtime/text/tokenizer.h"

#include <algorithm>

namespace tarn {
namespace {

Status NoTokenizer() { return Error(TARN_UNSUPPORTED, "the model has no tokenizer: it takes and gives token ids only"); }

// The text that the bytes of a piece complete. Returns how many bytes it has, of which those that fit are written.
size_t Feed(Span<const uint8_t> piece, Utf8State* state, Span<char> text) {
  size_t size = 0;
  for (const uint8_t byte : piece) {
    char out[kMaxUtf8Bytes];
    const size_t written = Utf8Feed(state, byte, out);
    for (size_t i = 0; i < written && size + i < text.size(); ++i) text[size + i] = out[i];
    size += written;
  }
  return size;
}

}  // namespace

Status CheckCapacity(size_t tokens, size_t capacity) {
  if (tokens <= capacity) return Ok();
  return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu tokens, the text has %zu", capacity, tokens);
}

Status Tokenize(TokenizerKind kind, Span<const char> text, Span<int32_t> tokens, size_t* count) {
  if (kind == TokenizerKind::kNone) return NoTokenizer();
  const size_t written = std::min(text.size(), tokens.size());
  for (size_t i = 0; i < written; ++i) tokens[i] = static_cast<uint8_t>(text[i]);
  *count = text.size();
  return CheckCapacity(text.size(), tokens.size());
}

Status Decode(const TokenizerTables& tables, Utf8State* state, int32_t token, Span<char> text, size_t* text_bytes) {
  if (tables.kind == TokenizerKind::kNone) return NoTokenizer();
  const uint32_t limit = tables.kind == TokenizerKind::kBytes ? std::min(tables.vocab_size, kByteTokens) : tables.vocab_size;
  if (token < 0 || static_cast<uint32_t>(token) >= limit) {
    return Error(TARN_INVALID_ARGUMENT, "token is %d, must be in [0, %u)", token, limit);
  }
  if (state->pending_bytes > kMaxUtf8Pending) {
    return Error(TARN_INVALID_ARGUMENT, "the text decoder's pending_bytes is %u, at most %u: zero it to begin a text",
                 state->pending_bytes, kMaxUtf8Pending);
  }
  const auto byte = static_cast<uint8_t>(token);
  const Span<const uint8_t> piece =
      tables.kind == TokenizerKind::kBytes ? Span<const uint8_t>(&byte, 1) : tables.Piece(static_cast<uint32_t>(token));
  Utf8State next = *state;
  const size_t size = Feed(piece, &next, {});
  if (size > text.size()) {
    return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu bytes, the text of token %d has %zu", text.size(), token, size);
  }
  Feed(piece, state, text);
  *text_bytes = size;
  return Ok();
}

// Of every byte that is no UTF-8 comes U+FFFD, and one more of what was pending.
size_t MaxPieceBytes(const TokenizerTables& tables) {
  return (size_t{std::max<uint32_t>(tables.max_piece_bytes, 1)} + 1) * (kMaxUtf8Bytes / 2);
}

bool IsSpecial(const TokenizerTables& tables, int32_t token) {
  return token >= 0 && static_cast<size_t>(token) < tables.special.size() && tables.special[static_cast<size_t>(token)] != 0;
}

size_t TokenBytes(const TokenizerTables& tables, int32_t token) {
  if (tables.kind == TokenizerKind::kBytes) return token >= 0 && static_cast<uint32_t>(token) < kByteTokens ? 1 : 0;
  return token < 0 || IsSpecial(tables, token) ? 0 : tables.Piece(static_cast<uint32_t>(token)).size();
}

}  // namespace tarn
