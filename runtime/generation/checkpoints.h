// Going back in a text that is being made: a ring of checkpoints, and a log of the tokens between them.
//
//   block: [ Checkpoints | ring | log | call | checkpoints, each: session, logits, sampler, text, grammar ]
//
// A position is a number of tokens of the session. A session that is given the same tokens in the same calls computes the same
// bits; so the log knows where calls begin, and a replay repeats them.
#ifndef TARN_RUNTIME_GENERATION_CHECKPOINTS_H_
#define TARN_RUNTIME_GENERATION_CHECKPOINTS_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/bump.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/generation/checkpoint_ring.h"
#include "runtime/generation/text_state.h"
#include "runtime/generation/token_log.h"
#include "runtime/grammar/grammar.h"
#include "runtime/session/session.h"
#include "runtime/text/sampler.h"

namespace tarn {

// What makes a text. Everything but the session may be missing.
struct Generation {
  Session* session;
  uint32_t vocab_size;
  Sampler* sampler;
  Grammar* grammar;
  TextState* text;
};

struct CheckpointsConfig {
  uint64_t ring_bytes;
  uint32_t log_tokens;
  uint32_t spacing;  // tokens between automatic checkpoints; UINT32_MAX: none
  uint32_t grammar_bytes;
};

struct CheckpointsBytes {
  uint64_t total;
  uint64_t checkpoint;
  uint64_t log;
  uint32_t capacity;
};

class Checkpoints {
 public:
  // Errors: TARN_INVALID_ARGUMENT (ring_bytes hold no checkpoint; a sampler for several sequences), TARN_OUT_OF_MEMORY.
  static Result<CheckpointsBytes> Measure(const Generation& generation, const CheckpointsConfig& config);
  // Errors: those of Measure, Block::From and Restart.
  static Result<Checkpoints*> Create(const Generation& generation, const CheckpointsConfig& config, const BlockSource& memory);
  static void Destroy(Checkpoints* checkpoints);

  // Forgets everything; the text begins at what the session has. Errors: TARN_INVALID_ARGUMENT (it was left in the middle of a
  // chunk, or its sequences are at different positions).
  Status Restart();
  // The session was given tokens [batch, count] in one call, and returned `logits` [batch, vocab] behind the last (nullptr: nobody
  // needs them). Errors: TARN_INVALID_ARGUMENT (the session or the sampler is not there).
  Status Record(const int32_t* tokens, size_t count, const float* logits);
  // A checkpoint of now. Errors: TARN_CONTEXT_FULL (the grammar's state is larger than grammar_bytes), TARN_INVALID_ARGUMENT (a
  // call was not recorded, or left the session in the middle of a chunk); nothing has changed.
  Status Mark(uint64_t tag, const float* logits);

  // Returns the logits there; nullptr where nobody knew them. Errors: TARN_NOT_FOUND (too far back), TARN_INVALID_ARGUMENT (ahead
  // of now); nothing has changed. Those of a prefill: the text is then as at the checkpoint where the replay began.
  Result<const float*> Rewind(uint64_t position);
  // Errors: TARN_NOT_FOUND.
  Result<const float*> RewindToTag(uint64_t tag);

  uint64_t position() const { return log_.end(); }
  // Every position from here on can be rewound to; position() + 1: not even that.
  uint64_t earliest() const;
  const CheckpointRing& ring() const { return ring_; }

 private:
  Checkpoints(const Generation& generation, const CheckpointsConfig& config) : generation_(generation), config_(config) {}
  Status Check() const;
  // Where in a checkpoint its parts begin.
  struct Places {
    uint64_t logits, sampler, text, grammar, end;
  };
  Places LayCheckpoint() const;
  size_t point_bytes() const;
  size_t text_bytes() const;
  size_t batch() const { return generation_.session->instance().limits().batch; }
  // `capacity` as Measure has found it. Only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t capacity);

  Status CheckRecorded(const int32_t* tokens, size_t count) const;
  bool GrammarFits() const { return generation_.grammar == nullptr || generation_.grammar->state_bytes() <= config_.grammar_bytes; }
  // The session is whole.
  void Fill(Checkpoint* checkpoint, const float* logits);
  void SavePoint(uint8_t* point) const;
  // As the text is now: recorded, or gone back to.
  void NotePoint();
  // What replays up to now end with, too.
  void NotePointOfLast();
  // Of a token of the last call, counted from its end.
  TextState::How HowTaken(const TextState::Counts& now, size_t from_end) const;
  void RestorePoint(const uint8_t* point);
  uint8_t* Slot(const Checkpoint& checkpoint) const { return slots_.data() + checkpoint.slot * slot_bytes_; }
  const float* LogitsOf(const Checkpoint& checkpoint) const;
  // To one of the ring.
  void GoTo(const Checkpoint& checkpoint);
  Result<const float*> Replay(uint64_t position);
  Result<const float*> ReplayPiece(uint64_t begin, size_t count);
  Status ReplayText(uint64_t position);
  Status TooFar(uint64_t position) const;

  Generation generation_;
  CheckpointsConfig config_;
  CheckpointRing ring_;
  TokenLog log_;
  Span<int32_t> call_;   // [batch, max_chunk]: what a replay feeds
  Span<uint8_t> point_;  // how it was when the text was recorded last
  Span<char> dropped_;   // what a replay gives out
  Span<uint8_t> slots_;
  uint64_t slot_bytes_ = 0;
  uint64_t grammar_tokens_ = 0;    // when the text was recorded last
  TextState::Counts text_counts_;  // then, too
  Block block_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_CHECKPOINTS_H_
