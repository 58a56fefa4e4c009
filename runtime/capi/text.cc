// C API: text. Translation only; the work is in runtime/text.
#include <cstddef>

#include "runtime/capi/handles.h"
#include "runtime/text/encode_text.h"
#include "runtime/text/encoder.h"
#include "runtime/text/piece_decoder.h"
#include "runtime/text/tokenizer.h"
#include "tarn/tarn.h"
#include "tarn/tokenizer.h"

namespace tarn {
namespace {

static_assert(sizeof(Utf8State) == sizeof(tarn_text_decoder) &&
                  offsetof(Utf8State, pending) == offsetof(tarn_text_decoder, pending) &&
                  offsetof(Utf8State, pending_bytes) == offsetof(tarn_text_decoder, pending_bytes) &&
                  offsetof(Utf8State, flags) == offsetof(tarn_text_decoder, flags),
              "one layout");
static_assert(sizeof(TextRange) == sizeof(tarn_text_range) && offsetof(TextRange, begin) == offsetof(tarn_text_range, begin) &&
                  offsetof(TextRange, end) == offsetof(tarn_text_range, end),
              "one layout");

constexpr uint32_t kDefaultWordBytes = 4096;

Utf8State* StateOf(tarn_text_decoder* decoder) { return reinterpret_cast<Utf8State*>(decoder); }

const TokenizerTables& TablesOf(const tarn_model* model) { return ModelOf(model).tokenizer(); }

// A tarn_tokenizer is an Encoder by another name.
Encoder* Of(tarn_tokenizer* tokenizer) { return reinterpret_cast<Encoder*>(tokenizer); }

Status TokenizeText(const tarn_model* model, Span<const char> text, Span<int32_t> tokens, size_t* count) {
  if (model == nullptr) return NullArgument("model");
  if (text.data() == nullptr && !text.empty()) return NullArgument("text");
  if (tokens.data() == nullptr && !tokens.empty()) return NullArgument("tokens");
  if (count == nullptr) return NullArgument("count");
  const TokenizerTables& tables = TablesOf(model);
  if (HasTables(tables.kind)) return EncodeText(tables, text, model->loaded.allocator(), tokens, count);
  return Tokenize(tables.kind, text, tokens, count);
}

Status DecodeToken(const tarn_model* model, tarn_text_decoder* decoder, int32_t token, Span<char> text, size_t* text_bytes) {
  if (model == nullptr) return NullArgument("model");
  if (decoder == nullptr) return NullArgument("decoder");
  if (text.data() == nullptr && !text.empty()) return NullArgument("text");
  if (text_bytes == nullptr) return NullArgument("text_bytes");
  return Decode(TablesOf(model), StateOf(decoder), token, text, text_bytes);
}

Result<tarn_tokenizer_config> ReadTokenizerConfig(const tarn_tokenizer_config* user) {
  tarn_tokenizer_config config = TARN_TOKENIZER_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  if (config.max_word_bytes == 0) config.max_word_bytes = kDefaultWordBytes;
  if (config.cache_words == 0) config.cache_words = kDefaultCacheWords;
  return config;
}

Status MeasureTokenizer(const tarn_model* model, const tarn_tokenizer_config* user, uint64_t* size_bytes) {
  if (model == nullptr) return NullArgument("model");
  if (size_bytes == nullptr) return NullArgument("size_bytes");
  TARN_ASSIGN_OR_RETURN(const tarn_tokenizer_config config, ReadTokenizerConfig(user));
  TARN_ASSIGN_OR_RETURN(*size_bytes, Encoder::Measure(TablesOf(model), {config.max_word_bytes, config.cache_words}));
  return Ok();
}

Status CreateTokenizer(const tarn_model* model, const tarn_tokenizer_config* user, tarn_tokenizer** tokenizer) {
  if (model == nullptr) return NullArgument("model");
  if (tokenizer == nullptr) return NullArgument("tokenizer");
  TARN_ASSIGN_OR_RETURN(const tarn_tokenizer_config config, ReadTokenizerConfig(user));
  TARN_ASSIGN_OR_RETURN(Encoder * encoder,
                        Encoder::Create(TablesOf(model), {config.max_word_bytes, config.cache_words}, BlockSourceFrom(config)));
  *tokenizer = reinterpret_cast<tarn_tokenizer*>(encoder);
  return Ok();
}

// As a Span whose ranges do not go back.
Result<Span<const TextRange>> ReadPlainRanges(const tarn_tokenizer_options& options) {
  if (options.plain_ranges == nullptr && options.plain_range_count != 0) return NullArgument("plain_ranges");
  const Span<const TextRange> ranges = {reinterpret_cast<const TextRange*>(options.plain_ranges), options.plain_range_count};
  size_t end = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].begin < end || ranges[i].end < ranges[i].begin) {
      return Error(TARN_INVALID_ARGUMENT, "plain_ranges[%zu] is %zu to %zu, expected to begin at %zu or later and end behind", i,
                   ranges[i].begin, ranges[i].end, end);
    }
    end = ranges[i].end;
  }
  return ranges;
}

Status BeginText(tarn_tokenizer* tokenizer, Span<const char> text, const tarn_tokenizer_options* user) {
  if (tokenizer == nullptr) return NullArgument("tokenizer");
  if (text.data() == nullptr && !text.empty()) return NullArgument("text");
  tarn_tokenizer_options options = TARN_TOKENIZER_OPTIONS_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &options));
  TARN_ASSIGN_OR_RETURN(const Span<const TextRange> plain, ReadPlainRanges(options));
  Of(tokenizer)->Begin(text, {options.no_template == 0, options.plain == 0, plain});
  return Ok();
}

Status ReadTokens(tarn_tokenizer* tokenizer, Span<int32_t> tokens, tarn_text_range* ranges, size_t* count) {
  if (tokenizer == nullptr) return NullArgument("tokenizer");
  if (tokens.data() == nullptr && !tokens.empty()) return NullArgument("tokens");
  if (count == nullptr) return NullArgument("count");
  return Of(tokenizer)->Read(tokens, {reinterpret_cast<TextRange*>(ranges), ranges == nullptr ? 0 : tokens.size()}, count);
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
  return decoder == nullptr || text == nullptr ? 0 : tarn::FinishPieces(tarn::StateOf(decoder), text);
}

size_t tarn_max_piece_bytes(const tarn_model* model) {
  return tarn::MaxPieceBytes(model == nullptr ? tarn::TokenizerTables() : tarn::TablesOf(model));
}

tarn_status tarn_tokenizer_requirements(const tarn_model* model, const tarn_tokenizer_config* config, uint64_t* size_bytes,
                                        tarn_error* error) {
  return tarn::Report(tarn::MeasureTokenizer(model, config, size_bytes), error);
}

tarn_status tarn_tokenizer_create(const tarn_model* model, const tarn_tokenizer_config* config, tarn_tokenizer** tokenizer,
                                  tarn_error* error) {
  return tarn::Report(tarn::CreateTokenizer(model, config, tokenizer), error);
}

void tarn_tokenizer_destroy(tarn_tokenizer* tokenizer) { tarn::Encoder::Destroy(tarn::Of(tokenizer)); }

tarn_status tarn_tokenizer_begin(tarn_tokenizer* tokenizer, const char* text, size_t text_bytes,
                                 const tarn_tokenizer_options* options, tarn_error* error) {
  return tarn::Report(tarn::BeginText(tokenizer, {text, text_bytes}, options), error);
}

tarn_status tarn_tokenizer_read(tarn_tokenizer* tokenizer, int32_t* tokens, tarn_text_range* ranges, size_t capacity, size_t* count,
                                tarn_error* error) {
  return tarn::Report(tarn::ReadTokens(tokenizer, {tokens, capacity}, ranges, count), error);
}

int tarn_token_is_special(const tarn_model* model, int32_t token) {
  return model != nullptr && tarn::IsSpecial(tarn::TablesOf(model), token) ? 1 : 0;
}

size_t tarn_token_bytes(const tarn_model* model, int32_t token) {
  return model == nullptr ? 0 : tarn::TokenBytes(tarn::TablesOf(model), token);
}
