// C API: streams of text. It stands on tarn_text_decode(), whatever the tokenizer is; stop strings are runtime/text.
#include "tarn/text_stream.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "core/bump.h"
#include "runtime/capi/handles.h"
#include "runtime/capi/text_stream_state.h"
#include "runtime/text/piece_decoder.h"
#include "runtime/text/stop_strings.h"
#include "tarn/tokenizer.h"

struct tarn_text_stream final : tarn::TextState {
  const tarn_model* model = nullptr;
  void (*write)(void* context, const char* text, size_t text_bytes) = nullptr;
  void* write_context = nullptr;
  bool keep_special = false;
  bool has_ended = false;
  Counts taken;
  tarn_text_decoder decoder = {};
  tarn::StopFinder finder;
  tarn::Span<char> piece;  // [tarn_max_piece_bytes()]: the text of a token
  tarn::Span<char> text;   // [max_bytes()] with a `write` function: what it gets
  tarn::Block block;

  // What one call gives out at most: the text of a token, and what was held back before it.
  size_t max_bytes() const override { return tarn_max_piece_bytes(model) + finder.max_bytes() - 1; }
  Counts counts() const override { return taken; }
  size_t state_bytes() const override;
  void Save(uint8_t* state) const override;
  void Restore(const uint8_t* state) override;
  tarn::Status Replay(int32_t token, How how, tarn::Span<char> dropped) override;
};

namespace tarn {
namespace {

static_assert(sizeof(StopString) == sizeof(tarn_stop_string) && offsetof(StopString, text) == offsetof(tarn_stop_string, text) &&
                  offsetof(StopString, text_bytes) == offsetof(tarn_stop_string, text_bytes),
              "one layout");

Span<const StopString> StopStringsOf(const tarn_text_stream_config& config) {
  return {reinterpret_cast<const StopString*>(config.stop_strings), config.stop_string_count};
}

Result<tarn_text_stream_config> ReadConfig(const tarn_model* model, const tarn_text_stream_config* user) {
  if (model == nullptr) return NullArgument("model");
  tarn_text_stream_config config = TARN_TEXT_STREAM_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  if (TokenizerOf(model) == TARN_TOKENIZER_NONE) {
    return Error(TARN_UNSUPPORTED, "the model has no tokenizer: it takes and gives token ids only");
  }
  if (config.stop_strings == nullptr && config.stop_string_count != 0) return NullArgument("stop_strings");
  TARN_RETURN_IF_ERROR(CheckStopStrings(StopStringsOf(config)));
  return config;
}

// Only counts when `bump` has no block.
void TakeArrays(const tarn_text_stream_config& config, Bump* bump, tarn_text_stream* stream) {
  stream->finder.TakeArrays(bump, StopStringsOf(config), config.keep_stop_string != 0);
  stream->piece = TakeArray<char>(*bump, tarn_max_piece_bytes(stream->model));
  if (config.write != nullptr) stream->text = TakeArray<char>(*bump, stream->max_bytes());
}

uint64_t Measure(const tarn_model* model, const tarn_text_stream_config& config) {
  Bump bump;
  bump.Take(sizeof(tarn_text_stream));
  tarn_text_stream stream;
  stream.model = model;
  TakeArrays(config, &bump, &stream);
  return bump.used();
}

Status MeasureStream(const tarn_model* model, const tarn_text_stream_config* user, uint64_t* size_bytes) {
  TARN_ASSIGN_OR_RETURN(const tarn_text_stream_config config, ReadConfig(model, user));
  if (size_bytes == nullptr) return NullArgument("size_bytes");
  *size_bytes = Measure(model, config);
  return Ok();
}

Status CreateStream(const tarn_model* model, const tarn_text_stream_config* user, tarn_text_stream** stream) {
  TARN_ASSIGN_OR_RETURN(const tarn_text_stream_config config, ReadConfig(model, user));
  if (stream == nullptr) return NullArgument("stream");
  const uint64_t size_bytes = Measure(model, config);
  TARN_ASSIGN_OR_RETURN(Block block, Block::From(BlockSourceFrom(config), size_bytes, "text stream"));
  Bump bump(block.bytes());
  auto* created = new (bump.Take(sizeof(tarn_text_stream))) tarn_text_stream();
  created->model = model;
  created->write = config.write;
  created->write_context = config.write_context;
  created->keep_special = config.keep_special != 0;
  TakeArrays(config, &bump, created);
  created->block = std::move(block);
  *stream = created;
  return Ok();
}

// Where the text of one call goes.
class Output {
 public:
  Output(tarn_text_stream* stream, Span<char> user, size_t* user_bytes)
      : stream_(stream), write_(stream->write), text_(write_ != nullptr ? stream->text : user), user_bytes_(user_bytes) {}
  // To `user` even if the stream has a function.
  static Output To(tarn_text_stream* stream, Span<char> user, size_t* user_bytes) {
    Output output(stream, user, user_bytes);
    output.write_ = nullptr;
    output.text_ = user;
    return output;
  }

  Status Check() const {
    if (write_ != nullptr) return Ok();
    if (text_.data() == nullptr) return NullArgument("text");
    if (user_bytes_ == nullptr) return NullArgument("text_bytes");
    if (text_.size() >= stream_->max_bytes()) return Ok();
    return Error(TARN_BUFFER_TOO_SMALL, "capacity is %zu bytes, a call may give out %zu: tarn_text_stream_max_bytes()",
                 text_.size(), stream_->max_bytes());
  }

  // The place for more text, and how much was written there.
  char* end() { return text_.data() + size_; }
  void Add(size_t size) { size_ += size; }
  void Add(Span<const char> text) {
    if (!text.empty()) std::memcpy(end(), text.data(), text.size());
    Add(text.size());
  }

  void GiveOut() {
    if (write_ == nullptr) {
      *user_bytes_ = size_;
    } else if (size_ > 0) {
      write_(stream_->write_context, text_.data(), size_);
    }
  }

 private:
  tarn_text_stream* stream_;
  decltype(stream_->write) write_;
  Span<char> text_;
  size_t* user_bytes_;
  size_t size_ = 0;
};

// The text that `token` completes, in `stream->piece`.
Result<Span<const char>> TextOf(tarn_text_stream* stream, int32_t token) {
  if (!stream->keep_special && tarn_token_is_special(stream->model, token) != 0) return Span<const char>();
  size_t size = 0;
  tarn_error error;
  if (tarn_text_decode(stream->model, &stream->decoder, token, stream->piece.data(), stream->piece.size(), &size, &error) !=
      TARN_OK) {
    return Error(error.status, "%s", error.message);
  }
  return Span<const char>(stream->piece.data(), size);
}

void Search(tarn_text_stream* stream, Span<const char> piece, Output* output) {
  for (const char byte : piece) output->Add(stream->finder.Feed(byte, output->end()));
  if (stream->finder.found() >= 0) stream->has_ended = true;
}

Status PromptToken(tarn_text_stream* stream, int32_t token, Output output) {
  TARN_RETURN_IF_ERROR(output.Check());
  if (!stream->has_ended) {
    TARN_ASSIGN_OR_RETURN(const Span<const char> piece, TextOf(stream, token));
    output.Add(stream->finder.Finish(output.end()));
    output.Add(piece);
    // A character at the end of a prompt is not a part of the answer.
    output.Add(TakeWholeRun(reinterpret_cast<Utf8State*>(&stream->decoder), output.end()));
  }
  ++stream->taken.prompt;
  output.GiveOut();
  return Ok();
}

Status FeedToken(tarn_text_stream* stream, int32_t token, Output output) {
  TARN_RETURN_IF_ERROR(output.Check());
  if (!stream->has_ended) {
    TARN_ASSIGN_OR_RETURN(const Span<const char> piece, TextOf(stream, token));
    Search(stream, piece, &output);
  }
  ++stream->taken.feed;
  output.GiveOut();
  return Ok();
}

Status FinishText(tarn_text_stream* stream, Output output) {
  TARN_RETURN_IF_ERROR(output.Check());
  if (!stream->has_ended) {
    const size_t size = tarn_text_finish(&stream->decoder, stream->piece.data());
    Search(stream, {stream->piece.data(), size}, &output);
    output.Add(stream->finder.Finish(output.end()));
    stream->has_ended = true;
  }
  output.GiveOut();
  return Ok();
}

// The finder's state comes behind it.
struct StreamState {
  tarn_text_stream::Counts taken;
  tarn_text_decoder decoder;
  uint32_t has_ended;
};

}  // namespace

TextState* StateOf(tarn_text_stream* stream) { return stream; }

}  // namespace tarn

size_t tarn_text_stream::state_bytes() const { return sizeof(tarn::StreamState) + finder.state_bytes(); }

void tarn_text_stream::Save(uint8_t* state) const {
  const tarn::StreamState saved = {taken, decoder, has_ended ? 1u : 0u};
  std::memcpy(state, &saved, sizeof(saved));
  finder.Save(state + sizeof(saved));
}

void tarn_text_stream::Restore(const uint8_t* state) {
  tarn::StreamState saved;
  std::memcpy(&saved, state, sizeof(saved));
  taken = saved.taken;
  decoder = saved.decoder;
  has_ended = saved.has_ended != 0;
  finder.Restore(state + sizeof(saved));
}

tarn::Status tarn_text_stream::Replay(int32_t token, How how, tarn::Span<char> dropped) {
  size_t dropped_bytes = 0;
  const tarn::Output output = tarn::Output::To(this, dropped, &dropped_bytes);
  if (how == How::kNot) return tarn::Ok();
  return how == How::kFeed ? tarn::FeedToken(this, token, output) : tarn::PromptToken(this, token, output);
}

tarn_status tarn_text_stream_requirements(const tarn_model* model, const tarn_text_stream_config* config, uint64_t* size_bytes,
                                          tarn_error* error) {
  return tarn::Report(tarn::MeasureStream(model, config, size_bytes), error);
}

tarn_status tarn_text_stream_create(const tarn_model* model, const tarn_text_stream_config* config, tarn_text_stream** stream,
                                    tarn_error* error) {
  return tarn::Report(tarn::CreateStream(model, config, stream), error);
}

void tarn_text_stream_destroy(tarn_text_stream* stream) {
  if (stream == nullptr) return;
  const tarn::Block block = std::move(stream->block);  // outlives the object that lies in it
  stream->~tarn_text_stream();
}

size_t tarn_text_stream_max_bytes(const tarn_text_stream* stream) { return stream == nullptr ? 0 : stream->max_bytes(); }

tarn_status tarn_text_stream_prompt(tarn_text_stream* stream, int32_t token, char* text, size_t capacity, size_t* text_bytes,
                                    tarn_error* error) {
  if (stream == nullptr) return tarn::Report(tarn::NullArgument("stream"), error);
  return tarn::Report(tarn::PromptToken(stream, token, tarn::Output(stream, {text, capacity}, text_bytes)), error);
}

tarn_status tarn_text_stream_feed(tarn_text_stream* stream, int32_t token, char* text, size_t capacity, size_t* text_bytes,
                                  tarn_error* error) {
  if (stream == nullptr) return tarn::Report(tarn::NullArgument("stream"), error);
  return tarn::Report(tarn::FeedToken(stream, token, tarn::Output(stream, {text, capacity}, text_bytes)), error);
}

tarn_status tarn_text_stream_finish(tarn_text_stream* stream, char* text, size_t capacity, size_t* text_bytes, tarn_error* error) {
  if (stream == nullptr) return tarn::Report(tarn::NullArgument("stream"), error);
  return tarn::Report(tarn::FinishText(stream, tarn::Output(stream, {text, capacity}, text_bytes)), error);
}

int32_t tarn_text_stream_stop(const tarn_text_stream* stream) { return stream == nullptr ? -1 : stream->finder.found(); }

void tarn_text_stream_reset(tarn_text_stream* stream) {
  if (stream == nullptr) return;
  stream->has_ended = false;
  stream->decoder = {};
  stream->finder.Reset();
}
