#include "runtime/text/piece_decoder.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/code_point.h"

namespace tarn {
namespace {

enum StateFlag : uint32_t {
  kBegun = 1,        // there was a token
  kInRun = 2,        // the last token was a byte; `pending` are those of the run
  kRunIsBroken = 4,  // the run is not UTF-8
  kHeldSpace = 8,    // the last token ended with a space that it loses if no other one comes
  kDropsSpace = 16,  // the text has not begun, and loses a space at its beginning
};

// What goes into a text, of which those bytes that fit are written.
class Writer {
 public:
  Writer(Utf8State* state, Span<char> text) : state_(state), text_(text) {}

  void Put(const char* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const bool is_dropped = (state_->flags & kDropsSpace) != 0 && bytes[i] == ' ';
      state_->flags &= ~uint32_t{kDropsSpace};
      if (is_dropped) continue;
      if (size_ < text_.size()) text_[size_] = bytes[i];
      ++size_;
    }
  }
  void PutReplacements(size_t count) {
    for (size_t i = 0; i < count; ++i) Put("\xEF\xBF\xBD", 3);
  }
  size_t size() const { return size_; }

 private:
  Utf8State* state_;
  Span<char> text_;
  size_t size_ = 0;
};

// Bytes of whole characters that a run begins with. `*is_broken`: what follows them can never be one.
uint32_t WholeCharacters(const Utf8State& state, bool* is_broken) {
  const uint8_t* at = state.pending;
  const uint8_t* const end = state.pending + state.pending_bytes;
  *is_broken = false;
  while (at < end) {
    const CodePoint character = DecodeCodePoint(at, end);
    *is_broken = !character.is_valid && !character.is_cut;
    if (!character.is_valid) break;
    at += character.bytes;
  }
  return static_cast<uint32_t>(at - state.pending);
}

void PutPending(Utf8State* state, uint32_t bytes, Writer* writer) {
  char out[kMaxRunBytes];
  std::memcpy(out, state->pending, bytes);
  writer->Put(out, bytes);
  state->pending_bytes -= bytes;
  std::memmove(state->pending, state->pending + bytes, state->pending_bytes);
}

void EndRun(Utf8State* state, Writer* writer) {
  bool is_broken = false;
  if (WholeCharacters(*state, &is_broken) == state->pending_bytes) PutPending(state, state->pending_bytes, writer);
  writer->PutReplacements(state->pending_bytes);
  state->pending_bytes = 0;
  state->flags &= ~uint32_t{kInRun | kRunIsBroken};
}

// What is pending of tokens before this one, and is neither of a run nor a space that may be the last one.
void EndCharacter(Utf8State* state, Writer* writer) {
  char out[kMaxUtf8Bytes];
  writer->Put(out, Utf8Finish(state, out));
}

void AddToRun(Utf8State* state, uint8_t byte, Writer* writer) {
  if ((state->flags & kInRun) == 0) EndCharacter(state, writer);
  state->flags |= kInRun;
  if ((state->flags & kRunIsBroken) != 0) return writer->PutReplacements(1);
  state->pending[state->pending_bytes++] = byte;
  bool is_broken = false;
  const uint32_t whole = WholeCharacters(*state, &is_broken);
  if (is_broken) {
    writer->PutReplacements(state->pending_bytes);
    state->pending_bytes = 0;
    state->flags |= kRunIsBroken;
  } else if (state->pending_bytes == kMaxRunBytes) {
    PutPending(state, whole, writer);
  }
}

Span<const uint8_t> FirstPiece(const TokenizerTables& tables, uint32_t id) {
  const FirstPieceTables& first = tables.first;
  const uint32_t* const found = std::lower_bound(first.ids.begin(), first.ids.end(), id);
  if (found != first.ids.end() && *found == id) {
    const size_t place = static_cast<size_t>(found - first.ids.begin());
    const uint32_t begin = place == 0 ? 0 : first.piece_ends[place - 1];
    return first.pieces.subspan(begin, first.piece_ends[place] - begin);
  }
  const Span<const uint8_t> piece = tables.Piece(id);
  const bool drops = tables.first_token_drops_space && !piece.empty() && piece[0] == ' ';
  return drops ? piece.subspan(1, piece.size() - 1) : piece;
}

}  // namespace

uint32_t MaxPending(const Utf8State& state) { return (state.flags & kInRun) != 0 ? kMaxRunBytes - 1 : kMaxUtf8Pending; }

size_t DecodePiece(const TokenizerTables& tables, Utf8State* state, uint32_t id, Span<char> text) {
  Writer writer(state, text);
  const uint8_t flags = id < tables.special.size() ? tables.special[id] : uint8_t{kNoPiece};
  if ((flags & kNoPiece) != 0) return 0;
  const bool is_first = (state->flags & kBegun) == 0;
  Span<const uint8_t> piece = is_first ? FirstPiece(tables, id) : tables.Piece(id);
  if (is_first) state->flags |= kBegun | (tables.text_drops_space ? uint32_t{kDropsSpace} : 0);
  if ((state->flags & kHeldSpace) != 0) writer.Put(" ", 1);
  state->flags &= ~uint32_t{kHeldSpace};
  if ((flags & kBytePiece) != 0) {
    for (const uint8_t byte : piece) AddToRun(state, byte, &writer);
    return writer.size();
  }
  if ((state->flags & kInRun) != 0) EndRun(state, &writer);
  if (tables.last_token_drops_space && !piece.empty() && piece[piece.size() - 1] == ' ') {
    piece = piece.subspan(0, piece.size() - 1);
    state->flags |= kHeldSpace;
  }
  for (const uint8_t byte : piece) {
    char out[kMaxUtf8Bytes];
    writer.Put(out, Utf8Feed(state, byte, out));
  }
  if ((state->flags & kHeldSpace) != 0) EndCharacter(state, &writer);  // comes before the space
  return writer.size();
}

size_t TakeWholeRun(Utf8State* state, char* text) {
  bool is_broken = false;
  if ((state->flags & kInRun) == 0 || WholeCharacters(*state, &is_broken) != state->pending_bytes) return 0;
  Writer writer(state, {text, kMaxRunBytes});
  PutPending(state, state->pending_bytes, &writer);
  return writer.size();
}

size_t FinishPieces(Utf8State* state, char* text) {
  Writer writer(state, {text, size_t{3} * kMaxRunBytes});
  if (state->pending_bytes > MaxPending(*state)) state->pending_bytes = 0;  // no state of this decoder's making
  if ((state->flags & kInRun) != 0) {
    EndRun(state, &writer);
  } else {
    EndCharacter(state, &writer);
  }
  *state = {};
  return writer.size();
}

}  // namespace tarn
