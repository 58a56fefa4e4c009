// A program prepared for one session: ops, operators, states, arena and scratch in one block. It knows no op by name.
//
//   block: [ Program | nodes, ops, tables, dense layers, constants | state | arena | scratch ]
//            `------------------- program_bytes -----------------'
//
// Measure() and Create() run the same code, so that the sizes which are reported are the sizes which are used. After Create()
// nothing is allocated.
#ifndef TARN_RUNTIME_INTERPRETER_PROGRAM_H_
#define TARN_RUNTIME_INTERPRETER_PROGRAM_H_

#include <cstddef>
#include <cstdint>

#include "runtime/core/allocator.h"
#include "runtime/core/bump.h"
#include "runtime/core/result.h"
#include "runtime/ops/op.h"
#include "runtime/planner/planner.h"

namespace tarn {

class PackedWeights;

// What a program is prepared for.
struct Environment {
  const Model* model;
  const Kernels* kernels;
  const DenseBackend* dense;
  const PackedWeights* packed;  // nullptr: only sizes are wanted
  Allocator allocator;          // for working memory during preparation
};

struct ProgramBytes {
  uint64_t state;
  uint64_t arena;
  uint64_t scratch;
  uint64_t program;
  uint64_t total;
};

// How many tokens the sequences can take from a reset, and the op that says so.
struct TokenBound {
  uint64_t tokens;  // UINT64_MAX: no bound
  const char* op;   // nullptr: no bound
};

// What an op took while it was profiled.
struct OpTime {
  const char* name;
  const char* kind;
  uint64_t runs;
  uint64_t ns;
};

class Program {
 public:
  // Sizes for these limits; validates every op on the way. Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED, TARN_OUT_OF_MEMORY.
  static Result<ProgramBytes> Measure(const Environment& environment, const Limits& limits);
  static Result<TokenBound> Bound(const Environment& environment);

  // Calls visit(spec, bytes) for every dense layer, in order. Errors: as Measure, and those of `visit`.
  template <typename F>
  static Status VisitDense(const Environment& environment, F visit);

  // In `block`, which is aligned to kAlignment and outlives the program. State is in reset. `ahead`: bytes of the caller's block
  // that lie before `block`; they count in the message. Takes no other memory, unless it fails (and for a moment what XNNPACK
  // allocates to be measured). Errors: TARN_BUFFER_TOO_SMALL (names both sizes) and those of Measure.
  static Result<Program*> Create(const Environment& environment, const Limits& limits, Span<uint8_t> block, uint64_t ahead = 0);
  // Destroys the dense layers; the block's memory is the caller's again.
  void Destroy();

  // Runs the ops on the next `tokens` tokens of every sequence, with values of time Outputs for the last `output_rows` of them;
  // with 0, what only serves outputs is left out. output_rows <= tokens, both within the limits, and tokens_seen() + tokens <=
  // bound().tokens: the caller has checked. Errors: TARN_INTERNAL (the state is then undefined until Reset).
  Status Run(size_t tokens, size_t output_rows, const ThreadPool& threads);
  void Reset();

  // On: zeroes all counts and starts. Off: stops and keeps them.
  void Profile(bool on);
  uint32_t op_count() const { return static_cast<uint32_t>(nodes_.size()); }
  OpTime op_time(uint32_t index) const;  // index < op_count()

  const Limits& limits() const { return limits_; }
  const ProgramBytes& bytes() const { return bytes_; }
  uint64_t tokens_seen() const { return *tokens_seen_; }
  const TokenBound& bound() const { return bound_; }

  // Program input i and output i, [batch, time, width], rows contiguous.
  uint8_t* input(uint32_t index) const;
  const uint8_t* output(uint32_t index) const;
  // State i of all sequences, [batch, shape].
  const StateBuffer& state(uint32_t index) const { return states_[index]; }

 private:
  struct Node {
    Op* op;
    Span<Operand> inputs;
    Span<Operand> outputs;
    Span<const StateBuffer> states;
    DenseSpec dense_spec;
    const DenseBackend* dense_backend;
    DenseLayer* dense;  // nullptr: the op has none
    bool has_dense;
    bool serves_outputs;  // writes values of time Outputs
    DenseBytes dense_bytes;
    uint64_t constant_bytes;
    uint64_t runs;  // while profiled, as is:
    uint64_t ns;
  };

  Program(const Environment& environment, const Limits& limits) : environment_(environment), limits_(limits) {}

  // A program that is checked and measured, not runnable yet; `block` has the bytes that Build counts.
  static Result<Program*> DraftIn(const Environment& environment, const Limits& limits, Bump& bump);
  // The same in working memory.
  static Result<Block> Draft(const Environment& environment, const Limits& limits);
  static Program* In(const Block& block) { return reinterpret_cast<Program*>(block.bytes().data()); }

  // Takes everything whose size follows from the graph alone. Without memory: only counts. Returns nullptr then.
  static Program* Build(const Environment& environment, const Limits& limits, Bump& bump);
  Status Prepare();
  Status PrepareNode(uint32_t index);
  Status PlanStates();
  Status PlanValues();
  Status AddUp(uint64_t built_bytes);
  Status Bind(Bump& bump);
  Status CreateDense(Bump& bump);
  void BindOperands(uint8_t* arena);
  static Status RunProfiled(Node& node, const RunContext& context);

  Span<const Node> nodes() const { return nodes_; }

  Environment environment_;
  Limits limits_;
  Span<Node> nodes_;
  Span<PlannedBuffer> values_;
  Span<StateBuffer> states_;
  uint64_t* tokens_seen_ = nullptr;  // the first bytes of the state
  Span<uint8_t> state_;
  uint8_t* arena_ = nullptr;
  uint8_t* scratch_ = nullptr;
  ProgramBytes bytes_{};
  uint64_t dense_bytes_ = 0;
  bool profiled_ = false;
  TokenBound bound_{UINT64_MAX, nullptr};
};

template <typename F>
Status Program::VisitDense(const Environment& environment, F visit) {
  // Packing does not depend on the limits.
  const Limits limits{1, 1, 1, 1};
  TARN_ASSIGN_OR_RETURN(const Block draft, Draft(environment, limits));
  for (const Node& node : In(draft)->nodes()) {
    if (node.has_dense) TARN_RETURN_IF_ERROR(visit(node.dense_spec, node.dense_bytes));
  }
  return Ok();
}

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_PROGRAM_H_
