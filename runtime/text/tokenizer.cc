#include "runtime/text/tokenizer.h"

#include <algorithm>

#include "runtime/text/piece_decoder.h"

namespace tarn {
namespace {

Status NoTokenizer() { return Error(TARN_UNSUPPORTED, "the model has no tokenizer: it takes and gives token ids only"); }

// The text that a token completes. Returns how many bytes it has, of which those that fit are written.
size_t Feed(const TokenizerTables& tables, Utf8State* state, uint32_t token, Span<char> text) {
  if (tables.kind != TokenizerKind::kBytes) return DecodePiece(tables, state, token, text);
  char out[kMaxUtf8Bytes];
  const size_t size = Utf8Feed(state, static_cast<uint8_t>(token), out);
  std::copy_n(out, std::min(size, text.size()), text.data());
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
  const uint32_t max_pending = tables.kind == TokenizerKind::kBytes ? kMaxUtf8Pending : MaxPending(*state);
  if (state->pending_bytes > max_pending) {
    return Error(TARN_INVALID_ARGUMENT, "the text decoder's pending_bytes is %u, at most %u: zero it to begin a text",
                 state->pending_bytes, max_pending);
  }
  Utf8State next = *state;
  const size_t size = Feed(tables, &next, static_cast<uint32_t>(token), {});
  if (size > text.size()) {
    return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu bytes, the text of token %d has %zu", text.size(), token, size);
  }
  Feed(tables, state, static_cast<uint32_t>(token), text);
  *text_bytes = size;
  return Ok();
}

// Of every byte that is no UTF-8 comes U+FFFD: of the token, of a character that was pending or of a row of bytes that was, and a
// space.
size_t MaxPieceBytes(const TokenizerTables& tables) {
  const uint32_t pending = HasTables(tables.kind) ? kMaxRunBytes + 1 : 1;
  return (size_t{std::max<uint32_t>(tables.max_piece_bytes, 1)} + pending) * (kMaxUtf8Bytes / 2);
}

bool IsSpecial(const TokenizerTables& tables, int32_t token) {
  return token >= 0 && static_cast<size_t>(token) < tables.special.size() &&
         (tables.special[static_cast<size_t>(token)] & kSpecialPiece) != 0;
}

size_t TokenBytes(const TokenizerTables& tables, int32_t token) {
  if (tables.kind == TokenizerKind::kBytes) return token >= 0 && static_cast<uint32_t>(token) < kByteTokens ? 1 : 0;
  return token < 0 || IsSpecial(tables, token) ? 0 : tables.Piece(static_cast<uint32_t>(token)).size();
}

}  // namespace tarn
