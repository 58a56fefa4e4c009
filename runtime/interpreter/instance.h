// The programs of a model, prepared for one session, with the memory that they share: states, arena and scratch in one block.
//
//   block: [ Instance | programs: nodes, ops, tables | dense layers, constants | state | arena | scratch ]
//            `------------------------ program_bytes ------------------------'
//
// Measure() and Create() run the same code, so that the sizes which are reported are the sizes which are used. After Create()
// nothing is allocated.
//
//   state: [ progress of each sequence | tokens of each source | declared states ]
//
// "encode" runs one source at a time, at its own length: no row of padding exists, whatever is batched.
#ifndef TARN_RUNTIME_INTERPRETER_INSTANCE_H_
#define TARN_RUNTIME_INTERPRETER_INSTANCE_H_

#include <utility>

#include "runtime/interpreter/program.h"
#include "runtime/interpreter/reorder.h"

namespace tarn {

struct ProgramBytes {
  uint64_t state;
  uint64_t arena;
  uint64_t scratch;
  uint64_t program;
  uint64_t total;
};

// Of one sequence. All zeros: nothing was read since the reset.
struct SequenceProgress {
  // kBrokenOff: a chunk was left in its middle, and the states are those of no token. kStepsWait: they lack the last steps.
  enum Rest : uint64_t { kWhole, kBrokenOff, kStepsWait };
  uint64_t tokens_seen;
  Rest rest;
};

struct TokenBounds {
  TokenBound by_stage[std::size(kStages)];
};

class Instance {
 public:
  // Sizes for these limits; validates every op on the way. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED, TARN_OUT_OF_MEMORY.
  static Result<ProgramBytes> Measure(const Environment& environment, const Limits& limits);

  // Of the program that takes most for a token; with sources of `max_source` tokens. Errors: as Measure.
  static Result<TokenWork> Work(const Environment& environment, uint32_t max_source);

  // What is known of the programs without limits, in working memory. The environment's model stays in its place as long.
  class Draft {
   public:
    Draft() = default;
    // Errors: as Measure.
    static Result<Draft> Make(const Environment& environment);
    // What Make() takes.
    static uint64_t Bytes(const Environment& environment);

    // Of every program, by stage; no bound where the model has no such program.
    TokenBounds bounds() const;
    // Calls visit(spec, packed_bytes) for every dense layer of every program, in order. Errors: those of `visit`.
    template <typename F>
    Status VisitDense(F visit) const;

   private:
    explicit Draft(Block block) : block_(std::move(block)) {}
    const Instance& instance() const { return *In(block_); }
    Block block_;
  };

  // In `block`, which is aligned to kAlignment and outlives the instance. State is in reset. `ahead`: bytes of the caller's block
  // that lie before `block`; they count in the message. Takes no other memory, unless it fails (and for a moment what XNNPACK
  // allocates to be measured). Errors: TARN_BUFFER_TOO_SMALL (names both sizes) and those of Measure.
  static Result<Instance*> Create(const Environment& environment, const Limits& limits, Span<uint8_t> block, uint64_t ahead = 0);
  // The error of Create(), for what lies before an instance in the same block, too.
  static Status BlockTooSmall(uint64_t found, uint64_t needed);
  // Destroys the dense layers; the block's memory is the caller's again, nothing of it poisoned.
  void Destroy();

  // Runs "encode" on source number `source`, of which the caller has put `tokens` rows, 1 to limits().max_source, into the inputs,
  // with values of time Outputs for the tokens that `output_tokens` names. Nothing is left of the source that was there before.
  // Errors: TARN_CANCELLED, TARN_INTERNAL (the source is then not encoded; Reset() clears what was written of it).
  Status Encode(size_t source, size_t tokens, Span<const uint32_t> output_tokens, const ThreadPool& threads);
  // Runs "decode" on the next `tokens` tokens of every sequence, with values of time Outputs for the last `output_rows` of them;
  // with 0, what only serves outputs is left out. output_rows <= tokens, both within the limits, and tokens seen + tokens <= the
  // program's bound: the caller has checked. Errors: TARN_CANCELLED, TARN_INTERNAL (the sequences are then broken off).
  Status Decode(size_t tokens, size_t output_rows, const ThreadPool& threads);
  // The same for the first `count` of sequences(), which the caller has filled: numbers in ascending order, and how many tokens
  // each takes, one behind the other in the inputs. Those that are not among them do not change, whatever happens. With beams and
  // sources, all sequences stand among them, with the same number of tokens. instance_parts.cc, which a program that does not need
  // it does not link.
  Status DecodeParts(size_t count, size_t output_rows, const ThreadPool& threads);
  Span<RunSequence> sequences() const { return run_; }  // [batch]
  // The same with a row of outputs for every token, for a single sequence, and with the bits of `tokens` runs of one token each.
  // KeepSteps is to follow, with the same `log` (TakeStepLog): until then the sequence is broken off. A run is not stopped in its
  // middle. Errors: TARN_INTERNAL (the sequence is then broken off).
  Status DecodeSteps(size_t tokens, StepLog* log, const ThreadPool& threads);
  // The sequence has taken the first `kept` tokens of the last DecodeSteps, 1 to all of them. Some of them may wait in the log,
  // which stays in its place until they are taken or forgotten: TakeSteps, Reset, ResetSequence, SetTokens.
  void KeepSteps(size_t kept, StepLog* log);
  // There are steps that wait; in this log: DecodeSteps takes them.
  bool steps_wait() const { return progress_[0].rest == SequenceProgress::kStepsWait; }
  bool steps_wait(const StepLog* log) const { return steps_wait() && log == log_; }
  // Takes steps that wait, which there are; to be called before the states are read, or go on in any other way. Errors:
  // TARN_INTERNAL (the sequence is then broken off).
  Status TakeSteps(const ThreadPool& threads) { return take_steps_(this, threads); }
  // Of "decode", whose states all belong to sequences, with batch 1; only counts when `bump` has no block.
  void TakeStepLog(Bump* bump, size_t max_steps, StepLog* log, uint64_t most_copies) const {
    program(Stage::kDecode)->TakeStepLog(bump, max_steps, log, most_copies);
  }
  // No: a chunk was left in its middle, a run in steps is not ended, or steps wait: the states are those of no token, until Reset,
  // ResetSequences, ResetSequence, SetTokens or, where steps wait, TakeSteps.
  bool is_whole(uint32_t sequence) const { return progress_[sequence].rest == SequenceProgress::kWhole; }
  bool is_whole() const;  // all are
  // Makes Encode and Decode fail while it is requested. Decode looks at it in chunks of at least kLongRun multiply-adds alone: a
  // shorter one is finished, so that stopping it breaks nothing off.
  Cancellation& cancellation() { return cancellation_; }
  // Everything is forgotten.
  void Reset();
  // All sequences start anew, or one; what they decode from stays.
  void ResetSequences();
  void ResetSequence(uint32_t sequence);
  // Sequence i goes on as sequence parents[i] < limits().batch, of the same source. Copies states of constant size; allocates
  // nothing.
  void Reorder(const uint32_t* parents);
  // Sequence `sequence` is behind `tokens` tokens, with states that the caller fills.
  void SetTokens(uint32_t sequence, uint64_t tokens) { progress_[sequence] = {tokens, SequenceProgress::kWhole}; }
  // Source `source` is one of `tokens` tokens, whose states the caller fills; the model has sources to decode from.
  void SetSourceTokens(uint32_t source, uint32_t tokens) { source_tokens_[source] = tokens; }

  // Gives pages back to the system that hold nothing until the next run: arena and scratch, and pages of states that are all zero.
  // Inputs and outputs are undefined afterwards. Returns the bytes that were resident.
  uint64_t Trim();

  void Profile(bool on);
  // Ops of all programs, in the order of the file.
  uint32_t op_count() const;
  OpTime op_time(uint32_t index) const;  // index < op_count()

  const Limits& limits() const { return limits_; }
  const ProgramBytes& bytes() const { return bytes_; }
  uint64_t tokens_seen(uint32_t sequence) const { return progress_[sequence].tokens_seen; }
  // Of the sequence that has seen most.
  uint64_t tokens_seen() const;
  bool in_lockstep() const;  // all have seen as many
  // Of each source, [sources]; 0: not encoded. Empty where the model has no sources to decode from.
  Span<const uint32_t> source_tokens() const { return source_tokens_; }

  // nullptr: the model has no such program.
  const Program* program(Stage stage) const { return programs_[static_cast<size_t>(stage)]; }
  uint8_t* input(Stage stage, uint32_t index) const { return program(stage)->input(index); }
  const uint8_t* output(Stage stage, uint32_t index) const { return program(stage)->output(index); }
  // Room for one row of Fixed outputs of "encode" per source, [sources, width]; the instance does not touch it.
  float* results() const { return results_; }
  // State i of all its owners.
  const StateBuffer& state(uint32_t index) const { return states_[index]; }
  uint32_t state_count() const { return static_cast<uint32_t>(states_.size()); }
  // The same, index < state_count(). With the tokens of sequences and sources they are all that outlives a call.
  Span<uint8_t> state_bytes(uint32_t index) const {
    return {states_[index].data, static_cast<size_t>(states_[index].bytes_per_sequence * Owners(index))};
  }

 private:
  // About a second on a slow core.
  static constexpr uint64_t kLongRun = uint64_t{1} << 31;
  // Whatever does not depend on the limits is the same with these.
  static constexpr Limits kSmallest{1, 1, 1, 1, 1, 1};

  Instance(const Environment& environment, const Limits& limits, const Reordering& reordering)
      : environment_(environment), limits_(limits), reordering_(reordering) {}

  static Result<Instance*> CreateIn(const Environment& environment, const Limits& limits, Span<uint8_t> block, uint64_t ahead);
  static Instance* Build(const Environment& environment, const Limits& limits, Bump& bump);
  // An instance that is checked and measured, not runnable yet; `bump` has the bytes that Build counts.
  static Result<Instance*> DraftIn(const Environment& environment, const Limits& limits, Bump& bump);
  // The same in working memory.
  static Result<Block> DraftInBlock(const Environment& environment, const Limits& limits);
  static Instance* In(const Block& block) { return reinterpret_cast<Instance*>(block.bytes().data()); }
  Status PlanStates();
  Status AddUp(uint64_t built_bytes);
  Status Bind(Bump& bump);
  // State, arena and scratch.
  struct Memory {
    void* progress;
    void* source_tokens;
    void* arena;
    void* results;
    void* scratch;
  };
  Memory LayMemory(Bump& bump);
  // For the first `count` of run_.
  RunContext DecodeContext(size_t count, size_t output_rows, const ThreadPool& threads);
  // The same for all sequences, each with so many tokens.
  RunContext DecodeAll(size_t tokens, size_t output_rows, const ThreadPool& threads);
  // `run` over sequences of run_, which are broken off until it is done.
  Status RunDecode(Status (Program::*run)(RunContext context), const RunContext& context);
  void OpenInputs() const;
  static Status TakeStepsOf(Instance* instance, const ThreadPool& threads);
  // Rows of states behind `tokens`, which a source of so many does not write, are zero again. It is not encoded.
  void ForgetSource(size_t source, size_t tokens);
  uint64_t Owners(uint32_t state) const;

  const Environment environment_;
  const Limits limits_;
  Reordering reordering_;
  Program* programs_[std::size(kStages)] = {};  // by stage
  Span<StateBuffer> states_;
  Span<SequenceProgress> progress_;  // the first bytes of the state
  Span<RunSequence> run_;            // of the run at hand
  Span<uint32_t> source_tokens_;
  float* results_ = nullptr;
  Span<uint8_t> working_;  // arena, results and scratch
  ProgramBytes bytes_{};
  Cancellation cancellation_;
  // Of steps that wait. A pointer, so that a program without runs in steps does not link them.
  StepLog* log_ = nullptr;
  Status (*take_steps_)(Instance* instance, const ThreadPool& threads) = nullptr;
};

template <typename F>
Status Instance::Draft::VisitDense(F visit) const {
  for (const Program* program : instance().programs_) {
    if (program != nullptr) TARN_RETURN_IF_ERROR(program->VisitDense(visit));
  }
  return Ok();
}

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_INSTANCE_H_
