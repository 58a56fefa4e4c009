// A session: sequences in lockstep, from token ids to logits. One block of memory holds all of it.
//
//   block: [ Session | Program's block ]
#ifndef TARN_RUNTIME_SESSION_SESSION_H_
#define TARN_RUNTIME_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>

#include "runtime/session/loaded_model.h"

namespace tarn {

class Session {
 public:
  // The bytes of the block; `program` includes the Session object itself. Errors: TARN_INVALID_ARGUMENT (limits out of range),
  // TARN_OUT_OF_MEMORY.
  static Result<ProgramBytes> Measure(const LoadedModel& model, const Limits& limits);

  // In the caller's block, or, if its data is nullptr, in one from the model's allocator.
  // Errors: TARN_BUFFER_TOO_SMALL, TARN_INVALID_ARGUMENT, TARN_OUT_OF_MEMORY.
  static Result<Session*> Create(const LoadedModel& model, const Limits& limits, Span<uint8_t> block);
  static void Destroy(Session* session);

  // Feeds `count` tokens per sequence, [batch, count], in chunks. Returns logits of the last token, [batch, vocab].
  Result<const float*> Prefill(const int32_t* tokens, size_t count);
  // Feeds one chunk and returns the logits of all its tokens, [batch, count, vocab].
  Result<const float*> Score(const int32_t* tokens, size_t count);
  void Reset() { program_->Reset(); }
  void Profile(bool on) { program_->Profile(on); }

  const Program& program() const { return *program_; }

 private:
  explicit Session(const LoadedModel& model) : model_(model) {}
  Status CheckTokens(const int32_t* tokens, size_t count) const;
  // Columns [begin, begin + chunk) of tokens [batch, count].
  Status RunChunk(const int32_t* tokens, size_t count, size_t begin, size_t chunk, size_t output_rows);

  const LoadedModel& model_;
  Program* program_ = nullptr;
  ThreadPool threads_;
  Block own_block_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_SESSION_H_
