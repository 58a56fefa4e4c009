// A session: sources and sequences, from token ids to logits. One block of memory holds all of it.
//
//   block: [ Session | Instance's block ]
#ifndef TARN_RUNTIME_SESSION_SESSION_H_
#define TARN_RUNTIME_SESSION_SESSION_H_

#include <cstddef>
#include <cstdint>

#include "runtime/session/loaded_model.h"

namespace tarn {

// Who is asked after every chunk of a prefill whether to go on: 0 stops it. It may call const functions of the session, and Cancel.
struct Progress {
  int (*go_on)(void* context, size_t done, size_t total) = nullptr;
  void* context = nullptr;
};

// Tokens for one sequence of a session.
struct SequenceTokens {
  uint32_t sequence;
  const int32_t* tokens;
  size_t count;
};

class Session {
 public:
  // The bytes of the block; `program` includes the Session object itself. Errors: TARN_INVALID_ARGUMENT (limits out of range),
  // TARN_OUT_OF_MEMORY.
  static Result<ProgramBytes> Measure(const LoadedModel& model, const Limits& limits);

  // In the caller's block, or, if its data is nullptr, in one from the model's allocator.
  // Errors: TARN_BUFFER_TOO_SMALL, TARN_INVALID_ARGUMENT, TARN_OUT_OF_MEMORY.
  static Result<Session*> Create(const LoadedModel& model, const Limits& limits, Span<uint8_t> block);
  static void Destroy(Session* session);

  // "decode" (TARN_UNSUPPORTED where the model has none; TARN_INVALID_ARGUMENT before Encode where it has sources).
  // Feeds `count` tokens per sequence, [batch, count], in chunks. Returns logits of the last token, [batch, vocab]. `progress` may
  // stop it after a chunk with TARN_CANCELLED.
  Result<const float*> Prefill(const int32_t* tokens, size_t count, const Progress& progress = {});
  // Feeds one chunk and returns the logits of all its tokens, [batch, count, vocab].
  Result<const float*> Score(const int32_t* tokens, size_t count);
  // session_sequences.cc. Feeds tokens to some sequences, in ascending order of their numbers; the others stay as they are. Each is
  // cut into chunks as by a Prefill of its own; its last chunk stands in the last run. Returns the logits of the last token of
  // each, [parts, vocab], or nullptr where they are not wanted. Errors: as Prefill; TARN_INVALID_ARGUMENT (beams decode from
  // sources).
  Result<const float*> PrefillSequences(Span<const SequenceTokens> parts, bool wants_logits);
  // One sequence starts anew. Errors: TARN_INVALID_ARGUMENT.
  Status ResetSequence(uint32_t sequence);
  // session_steps.cc. Feeds `count` tokens of one sequence in one chunk and returns the logits of all of them, [count, vocab]: the
  // bits that `count` calls of Prefill with one token each would give. `log` is this session's, of at least `count` steps. Other
  // calls fail until KeepSteps. Errors: as Score; nothing has changed, except with TARN_INTERNAL.
  Result<const float*> Steps(const int32_t* tokens, size_t count, StepLog* log);
  // Ends the last Steps: the session has read the first `kept` of its tokens, 1 to all of them. The logits stay where they are.
  // Some of the steps may wait in `log`, which the session needs until MakeWhole, or until it is reset or restored.
  void KeepSteps(size_t kept, StepLog* log);
  // The most tokens that Steps takes; TARN_UNSUPPORTED or TARN_INVALID_ARGUMENT (the session has several sequences, another task).
  Result<uint32_t> MaxSteps() const;
  void TakeStepLog(Bump* bump, size_t max_steps, StepLog* log, uint64_t most_copies = StepLog::kMostCopies) const {
    instance_->TakeStepLog(bump, max_steps, log, most_copies);
  }

  // Sequence i goes on as sequence parents[i], of the same source.
  Status Reorder(const uint32_t* parents);

  // "encode" (TARN_UNSUPPORTED where the model has another task). Sources are rows of tokens [sources, stride], of `lengths` ids
  // each; what lies behind is not looked at. Seq2Seq: all sources; the sequences start anew.
  Status Encode(const int32_t* tokens, size_t stride, const size_t* lengths);
  // Classification: logits [sources, labels].
  Result<const float*> Classify(const int32_t* tokens, size_t stride, const size_t* lengths);
  // MaskedLm: one source, logits of the tokens at `positions`, [positions, vocab].
  Result<const float*> Fill(const int32_t* tokens, size_t count, Span<const uint32_t> positions);

  // All that is carried from call to call, to bytes and back (snapshot.h).
  uint64_t SnapshotBytes(bool is_compact = false) const;
  Status Save(Span<uint8_t> snapshot, bool is_compact = false) const;
  Status Restore(Span<const uint8_t> snapshot);
  // The same as a delta snapshot, which needs the snapshot `base`.
  Result<uint64_t> DeltaBytes(Span<const uint8_t> base) const;
  Status SaveDelta(Span<const uint8_t> base, Span<uint8_t> delta) const;
  Status RestoreDelta(Span<const uint8_t> base, Span<const uint8_t> delta);
  // The same of one sequence with its source: the snapshot is one of a session of one sequence. 0 bytes where there is no such
  // sequence. Errors besides: TARN_INVALID_ARGUMENT (no such sequence; Restore: others decode from the same source).
  uint64_t SequenceSnapshotBytes(uint32_t sequence) const;
  Status SaveSequence(uint32_t sequence, Span<uint8_t> snapshot) const;
  Status RestoreSequence(uint32_t sequence, Span<const uint8_t> snapshot);

  // Takes steps that wait (step_log.h): whatever reads the states, or goes on in another way, asks for it first. Errors:
  // TARN_INVALID_ARGUMENT where a chunk was left in its middle.
  Status MakeWhole() const;
  Status MakeWhole(uint32_t sequence) const;
  // Errors: TARN_INVALID_ARGUMENT where sequences have seen different numbers of tokens.
  Status ExpectLockstep() const;
  // The same for memory of this process, without a format: session_state.cc, which a program that does not need it does not link.
  // `state` has StateBytes(), at any alignment; SetState() takes what CopyState() wrote of a session of the same model and shape,
  // which was whole.
  uint64_t StateBytes() const;
  void CopyState(uint8_t* state) const;
  void SetState(const uint8_t* state);
  // Goes on as `from`, another session of the model. Errors: TARN_INVALID_ARGUMENT (another model, another shape, a chunk of `from`
  // that was left in its middle); this one has not changed.
  Status CopyFrom(const Session& from);
  // Sequence `to` goes on as sequence `sequence` of `from`, which may be this session. Errors: TARN_INVALID_ARGUMENT (as CopyFrom;
  // other sequences of this one decode from the same source).
  Status CopySequence(uint32_t to, const Session& from, uint32_t sequence);

  // Any thread, a signal handler: the call that runs, or else the next one that runs the model, fails with TARN_CANCELLED.
  void Cancel() { instance_->cancellation().Request(); }
  void Reset() {
    instance_->cancellation().Withdraw();
    instance_->Reset();
  }
  uint64_t Trim() { return instance_->Trim(); }
  void Profile(bool on) { instance_->Profile(on); }

  const Instance& instance() const { return *instance_; }
  const LoadedModel& model() const { return model_; }

 private:
  explicit Session(const LoadedModel& model) : model_(model) {}
  Status ExpectTask(format::Task task) const;
  // Errors: TARN_CANCELLED where that was requested; the request is then done with.
  Status TakeCancellation();
  // That sequences take tokens one by one, and have something to decode from.
  Status ExpectDecoder() const;
  Status ExpectSources() const;
  Status CheckSequences(const int32_t* tokens, size_t count) const;
  Status CheckPart(const SequenceTokens& part) const;
  Status CheckSequence(uint32_t sequence) const;
  // `count` more tokens, behind `seen`, are within the bound of the model.
  Status CheckRoom(uint64_t seen, size_t count) const;
  // Errors: TARN_INVALID_ARGUMENT where several sequences decode from one source.
  Status ExpectOwnSource() const;
  size_t TakeChunks(Span<const SequenceTokens> parts, size_t left);
  // Columns [begin, begin + chunk) of tokens [batch, count].
  Status RunChunk(const int32_t* tokens, size_t count, size_t begin, size_t chunk, size_t output_rows);
  Status CheckSources(const int32_t* tokens, size_t stride, const size_t* lengths) const;
  Status CheckSource(size_t source, const int32_t* tokens, size_t count) const;
  Status CheckStates(const Session& from) const;
  Status CheckSequencePlaces(uint32_t to, const Session& from, uint32_t sequence) const;
  Status EncodeSource(size_t source, const int32_t* tokens, size_t count, Span<const uint32_t> output_tokens);
  const float* Logits(Stage stage) const { return reinterpret_cast<const float*>(instance_->output(stage, 0)); }

  const LoadedModel& model_;
  Instance* instance_ = nullptr;
  ThreadPool threads_;
  Block own_block_;
};

// Errors: TARN_INVALID_ARGUMENT (names the first id that is not below `vocab`).
Status CheckIds(const int32_t* tokens, size_t count, uint32_t vocab);

}  // namespace tarn

#endif  // TARN_RUNTIME_SESSION_SESSION_H_
