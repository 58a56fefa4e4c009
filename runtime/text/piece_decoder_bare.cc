// Without an operating system: a token is a byte (runtime/model/tokenizer_bare.cc).
#include "runtime/text/piece_decoder.h"

namespace tarn {

uint32_t MaxPending(const Utf8State&) { return kMaxUtf8Pending; }

size_t DecodePiece(const TokenizerTables&, Utf8State*, uint32_t, Span<char>) { return 0; }

size_t TakeWholeRun(Utf8State*, char*) { return 0; }

size_t FinishPieces(Utf8State* state, char* text) {
  const size_t size = Utf8Finish(state, text);
  *state = {};
  return size;
}

}  // namespace tarn
