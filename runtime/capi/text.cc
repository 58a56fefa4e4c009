// C API: text. Translation only; the work is in runtime/text.
#include <cstddef>

#include "runtime/capi/handles.h"
#include "runtime/text/tokenizer.h"
#include "tarn/tarn.h"

namespace tarn {
namespace {

static_assert(static_cast<int>(TokenizerKind::kNone) == TARN_TOKENIZER_NONE, "one numbering");
static_assert(static_cast<int>(TokenizerKind::kBytes) == TARN_TOKENIZER_BYTES, "one numbering");
static_assert(sizeof(Utf8State) == sizeof(tarn_text_decoder) &&
                  offsetof(Utf8State, pending) == offsetof(tarn_text_decoder, pending) &&
                  offsetof(Utf8State, pending_bytes) == offsetof(tarn_text_decoder, pending_bytes),
              "one layout");

TokenizerKind KindOf(const tarn_model* model) { return static_cast<TokenizerKind>(TokenizerOf(model)); }

Utf8State* StateOf(tarn_text_decoder* decoder) { return reinterpret_cast<Utf8State*>(decoder); }

Status TokenizeText(const tarn_model* model, Span<const char> text, Span<int32_t> tokens, size_t* count) {
  if (model == nullptr) return NullArgument("model");
  if (text.data() == nullptr && !text.empty()) return NullArgument("text");
  if (tokens.data() == nullptr && !tokens.empty()) return NullArgument("tokens");
  if (count == nullptr) return NullArgument("count");
  return Tokenize(KindOf(model), text, tokens, count);
}

Status DecodeToken(const tarn_model* model, tarn_text_decoder* decoder, int32_t token, Span<char> text, size_t* text_bytes) {
  if (model == nullptr) return NullArgument("model");
  if (decoder == nullptr) return NullArgument("decoder");
  if (text.data() == nullptr && !text.empty()) return NullArgument("text");
  if (text_bytes == nullptr) return NullArgument("text_bytes");
  return Decode(KindOf(model), VocabOf(model), StateOf(decoder), token, text, text_bytes);
}

}  // namespace
}  // namespace tarn

tarn_status tarn_tokenize(const tarn_model* model, const char* text, size_t text_bytes, int32_t* tokens, size_t capacity,
                          size_t* count, tarn_error* error) {
  return tarn::Report(tarn::TokenizeText(model, {text, text_bytes}, {tokens, capacity}, count), error);
}

tarn_status tarn_text_decode(const tarn_model* model, tarn_text_decoder* decoder, int32_t token, char* text, size_t capacity,
                             size_t* text_bytes, tarn_error* error) {
  return tarn::Report(tarn::DecodeToken(model, decoder, token, {text, capacity}, text_bytes), error);
}

size_t tarn_text_finish(tarn_text_decoder* decoder, char* text) {
  return decoder == nullptr || text == nullptr ? 0 : tarn::Utf8Finish(tarn::StateOf(decoder), text);
}

size_t tarn_max_piece_bytes(const tarn_model* model) {
  return tarn::MaxPieceBytes(model == nullptr ? tarn::TokenizerKind::kNone : tarn::KindOf(model));
}
