// What an op is, and what it gets to see: at preparation (PrepareContext) and while running (RunContext).
//
// Validate in Prepare, run blind in Run. Prepare reads attributes and shapes, and of weights only indices. It is called for the
// report of requirements as well as for a session; what it accepts Run can do without another check.
#ifndef TARN_RUNTIME_OPS_OP_H_
#define TARN_RUNTIME_OPS_OP_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>

#include "core/cancellation.h"
#include "core/format.h"
#include "core/result.h"
#include "core/span.h"
#include "kernels/dense/dense.h"
#include "kernels/kernels.h"
#include "runtime/model/model.h"
#include "runtime/platform/thread_pool.h"
#include "variants/shape.h"

namespace tarn {

// How many rows a value has for each sequence.
struct Axis {
  format::Time time;
  uint32_t fixed_rows;  // with Time::Fixed

  static Axis Of(const format::Value& value) { return {value.time(), value.rows()}; }
  bool operator==(const Axis& other) const { return time == other.time && fixed_rows == other.fixed_rows; }
};

// Everything that sizes depend on.
struct Limits {
  uint32_t batch;            // sequences
  uint32_t max_chunk;        // of a chunk, per sequence
  uint32_t max_output_rows;  // of logits, per sequence
  uint32_t threads;
  uint32_t beams = 1;       // sequences that decode from one source; a divisor of batch
  uint32_t max_source = 0;  // tokens of a source

  uint32_t sources() const { return batch / beams; }
  uint64_t MaxRows(Axis axis) const {
    if (axis.time == format::Time::Fixed) return uint64_t{batch} * axis.fixed_rows;
    return uint64_t{batch} * (axis.time == format::Time::Tokens ? max_chunk : max_output_rows);
  }
};

// Columns of a value during a run; row r of them starts at data + r * stride elements. Rows are [batch, time].
struct Operand {
  void* data;
  size_t stride;

  float* f32() const { return static_cast<float*>(data); }
  float* row(size_t r) const { return f32() + r * stride; }
  const int32_t* i32() const { return static_cast<const int32_t*>(data); }
};

// Memory of one declared state for all its owners: [batch, shape], or [sources, shape with the longest source]. "Sequence" reads
// "source" for the latter.
struct StateBuffer {
  uint8_t* data;
  uint64_t bytes_per_sequence;

  uint8_t* bytes(size_t sequence) const { return data + sequence * bytes_per_sequence; }
  float* f32(size_t sequence) const { return reinterpret_cast<float*>(bytes(sequence)); }
};

// Rows of one state that a step writes: the state has `parts` equal parts, and `bytes` from `begin` on are written in each.
struct StateWrite {
  uint32_t state;  // of those of the op
  uint64_t parts;
  uint64_t begin;
  uint64_t bytes;
};

class StateWrites {
 public:
  static constexpr size_t kMost = 12;
  void Add(const StateWrite& write) { writes_[count_++] = write; }
  Span<const StateWrite> all() const { return {writes_, count_}; }

 private:
  StateWrite writes_[kMost];
  size_t count_ = 0;
};

// A sequence of a session in a run.
struct RunSequence {
  uint64_t tokens_seen;  // since its reset, before this chunk
  uint32_t number;       // in the session: whose states they are
  uint32_t tokens;       // that it takes, >= 1
};

// "encode" runs with batch 1: one source at a time, `tokens` of it, all of them. "decode" runs chunks of some or all sequences of
// the session, which may take different numbers of tokens. An op that runs by rows sees all of them at once; others see runs of
// sequences that take the same number, so that their rows are [batch, tokens].
struct RunContext {
  size_t batch;                       // sequences that are seen at once
  Span<const RunSequence> sequences;  // [batch]
  size_t tokens;                      // of each of them, >= 1; 0: an op that runs by rows sees sequences that differ
  size_t token_rows;                  // of all of them
  size_t output_rows;                 // per sequence; the last ones of the chunk, or:
  const uint32_t* output_tokens;      // encode: those tokens of the source, [output_rows]; nullptr: the last ones
  uint64_t first_position;
  Span<const Operand> inputs;
  Span<const Operand> outputs;
  Span<const StateBuffer> states;
  Span<uint8_t> scratch;  // what the op requested, aligned; not kept between runs
  DenseLayer* dense;
  const DenseBackend* dense_backend;
  const Kernels* kernels;
  const ThreadPool* threads;
  const Cancellation* cancellation;    // nullptr: the run is too short to be stopped
  size_t source;                       // encode: the one that runs; its number in states of Owner.Source
  size_t beams;                        // decode: sequence number s reads source s / beams; all beams of a source run together
  Span<const uint32_t> source_tokens;  // decode: how many tokens each source has, by its number
  bool steps = false;                  // decode: for an op that runs_steps(): the one sequence takes its tokens step by step

  // The results of the run will not be looked at: a long op may return early, and must before it reads an index or a count that a
  // loop it left has not written.
  bool cancelled() const { return cancellation != nullptr && cancellation->requested(); }

  // Of one sequence; not of tokens where they differ.
  size_t sequence_rows(Axis axis) const {
    if (axis.time == format::Time::Fixed) return axis.fixed_rows;
    return axis.time == format::Time::Tokens ? tokens : output_rows;
  }
  size_t rows(Axis axis) const { return axis.time == format::Time::Tokens ? token_rows : batch * sequence_rows(axis); }
  // Of sequence i of the run, i < batch; its number is the place of its states.
  size_t number(size_t i) const { return sequences[i].number; }
  uint64_t tokens_seen(size_t i) const { return sequences[i].tokens_seen; }
  uint64_t position(size_t i, size_t token) const { return first_position + sequences[i].tokens_seen + token; }
  // The source of group i of `beams` sequences of the run.
  size_t source_of(size_t i) const { return sequences[i * beams].number / beams; }
};

// The op's side of preparation: checks on one side, requests on the other.
class PrepareContext {
 public:
  PrepareContext(const Model& model, Stage stage, const format::Op& op, const Limits& limits, const Kernels& kernels)
      : model_(model), program_(*model.program(stage)), stage_(stage), op_(op), limits_(limits), kernels_(kernels) {}

  const format::Op& op() const { return op_; }
  // Errors: TARN_BAD_FORMAT, where the op stands in another program.
  Status ExpectStage(Stage stage) const;
  const Limits& limits() const { return limits_; }
  const Kernels& kernels() const { return kernels_; }
  uint64_t first_position() const { return model_.graph().first_position(); }
  // Of the ids that the program reads.
  uint32_t vocab_size() const { return model_.vocab_size(stage_); }
  // Of the ids that "decode" reads and writes.
  uint32_t target_vocab_size() const { return model_.vocab_size(Stage::kDecode); }

  // Counts of operands; `tensors` may have a range (an optional bias). Errors: TARN_BAD_FORMAT.
  Status Expect(uint32_t inputs, uint32_t outputs, uint32_t tensors_least, uint32_t tensors_most, uint32_t states) const;
  // The two halves of it, for ops whose states depend on what they find in them.
  Status ExpectValues(uint32_t inputs, uint32_t outputs) const;
  Status ExpectOwned(uint32_t tensors_least, uint32_t tensors_most, uint32_t states) const;

  // Inputs and outputs, by index; indices below the expected counts. Width and dtype as wanted, or TARN_BAD_FORMAT that names
  // `what`.
  uint32_t input_width(uint32_t index) const { return op_.inputs()->Get(index)->width(); }
  // The caller of the program fills it, with values that have been checked.
  bool is_program_input(uint32_t index) const { return op_.inputs()->Get(index)->value() < program_.num_inputs(); }
  uint32_t input_stride(uint32_t index) const { return InputValue(index).width(); }
  Axis input_axis(uint32_t index) const { return Axis::Of(InputValue(index)); }
  uint32_t output_width(uint32_t index) const { return OutputValue(index).width(); }
  Axis output_axis(uint32_t index) const { return Axis::Of(OutputValue(index)); }
  Status ExpectInput(uint32_t index, const char* what, uint64_t width, format::DType dtype = format::DType::F32) const;
  Status ExpectOutput(uint32_t index, const char* what, uint64_t width, format::DType dtype = format::DType::F32) const;
  // All inputs and outputs have the same number of rows. Sets `*axis` to theirs.
  Status ExpectOneAxis(Axis* axis) const;
  // All inputs and outputs have a row per token.
  Status ExpectTokens() const;

  uint32_t tensor_count() const { return op_.tensors() == nullptr ? 0 : op_.tensors()->size(); }
  TensorView tensor(uint32_t index) const { return model_.tensor(op_.tensors()->Get(index)); }
  // An embedding op reads it too.
  bool is_embedding_table(uint32_t index) const { return model_.IsEmbeddingTable(op_.tensors()->Get(index)); }
  // An F32 tensor of that shape; its data. Here and below: a missing one is an error too.
  Result<const float*> ExpectTensor(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const;
  Result<const float*> ExpectTensor(uint32_t index, const char* what, const TensorShape& shape) const;
  // The same of I32.
  Result<const int32_t*> ExpectIntegers(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const;
  // A state as a variant wants it. Returns what it is stored as.
  Result<DType> ExpectState(uint32_t index, const StateInfo& info) const;
  // An F32 state of that shape.
  Status ExpectState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape) const;
  // An F32 state of a source of that shape, where `source_axis` >= 0 names a dimension of 1 that is as long as the longest source.
  Status ExpectSourceState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape, int source_axis = -1) const;
  // The same, F32, F16 or I8. Returns it.
  Result<DType> ExpectTypedSourceState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape,
                                       int source_axis = -1) const;
  // A state of that shape and of any of the dtypes that states of attention have: F32, F16, or with `or_i8` I8. Returns it.
  Result<DType> ExpectTypedState(uint32_t index, const char* what, std::initializer_list<uint64_t> shape, bool or_i8 = false) const;

  // Requests. Scratch is shared by all ops and holds nothing between runs; constants are the op's own.
  void RequestScratch(uint64_t bytes) { scratch_bytes_ = bytes; }
  void RequestConstants(uint64_t bytes) { constant_bytes_ = bytes; }
  void RequestDense(const DenseSpec& spec) {
    dense_ = spec;
    has_dense_ = true;
  }
  // Weights that the op itself reads where the model file has them: for the report of memory alone.
  void ReportDense(const DenseSpec& spec) {
    dense_ = spec;
    reports_dense_ = true;
  }
  // What a run at the limits takes on top of its values and its dense layer, in multiply-adds: the product of the factors is added
  // to what was said before. An estimate, for a bound on what a file can ask for; whatever an attribute multiplies must be in it.
  void AddWork(std::initializer_list<uint64_t> factors);
  // The sequences can take `tokens` tokens from a reset and no more; in "encode": a source.
  void BoundTokens(uint64_t tokens) { bound_tokens_ = tokens; }

  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t constant_bytes() const { return constant_bytes_; }
  uint64_t bound_tokens() const { return bound_tokens_; }
  // With that of values and dense layer; UINT64_MAX: more than 64 bits hold.
  uint64_t Work() const;
  const DenseSpec* dense() const { return has_dense_ ? &dense_ : nullptr; }
  const DenseSpec* reported_dense() const { return reports_dense_ ? &dense_ : nullptr; }

 private:
  const format::Value& Value(uint32_t index) const { return *program_.values()->Get(index); }
  Result<const uint8_t*> ExpectTensorOf(DType dtype, uint32_t index, const char* what, Span<const uint64_t> shape) const;
  // dtypes: F32 and the bits of others.
  Result<DType> ExpectAnyState(uint32_t index, const char* what, Span<const uint64_t> shape, StoredAs stored_as,
                               format::Owner owner, int source_axis) const;
  const format::Value& InputValue(uint32_t index) const { return Value(op_.inputs()->Get(index)->value()); }
  const format::Value& OutputValue(uint32_t index) const { return Value(op_.outputs()->Get(index)); }

  const Model& model_;
  const format::Program& program_;
  const Stage stage_;
  const format::Op& op_;
  const Limits& limits_;
  const Kernels& kernels_;
  uint64_t scratch_bytes_ = 0;
  uint64_t constant_bytes_ = 0;
  uint64_t bound_tokens_ = UINT64_MAX;
  uint64_t work_ = 0;
  DenseSpec dense_{};
  bool has_dense_ = false, reports_dense_ = false;
};

// Lives in the session's block and is never destroyed: it owns nothing.
class Op {
 public:
  virtual Status Prepare(PrepareContext& context) = 0;
  // Fills the constants that Prepare requested; once, before the first run.
  virtual void FillConstants(uint8_t*) {}
  virtual Status Run(const RunContext& context) = 0;
  // Every row is computed for itself, whatever sequence it belongs to: Run reads batch and rows() of the context, but not `tokens`,
  // and it has no states. A dense layer then reads its weights once for all sequences.
  virtual bool runs_by_rows() const { return false; }
  // Run takes steps: with `steps` in the context every row and state gets the bits that it gets from runs of one token each. The
  // work that no step leaves to the next one is done once for all.
  virtual bool runs_steps() const { return false; }
  // Of an op whose step writes a few rows of its states: how many bytes at most, and what the step behind `tokens_seen` tokens
  // writes. 0: it writes all of them.
  virtual uint64_t step_write_bytes() const { return 0; }
  virtual void FindStepWrites(uint64_t tokens_seen, StateWrites* writes) const {
    static_cast<void>(tokens_seen);
    static_cast<void>(writes);
  }

 protected:
  ~Op() = default;
};

// A line of the table of ops (registry.cc).
struct OpKind {
  const char* name;
  size_t bytes;
  Op* (*construct)(void* memory);  // aligned to kAlignment
  // The attributes in a few words, for people; may write nothing.
  void (*describe)(const format::Op& op, char* text, size_t text_bytes);
  // The heads of attention with a constant state, for comparison with a KV cache of the same heads. nullptr, and the function may
  // return it: the op is no such attention.
  const format::Heads* (*heads)(const format::Op& op);
};

template <typename T>
constexpr OpKind MakeOpKind(const char* name, void (*describe)(const format::Op&, char*, size_t) = nullptr,
                            const format::Heads* (*heads)(const format::Op&) = nullptr) {
  return {name, sizeof(T), [](void* memory) -> Op* { return new (memory) T; }, describe, heads};
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_OP_H_
