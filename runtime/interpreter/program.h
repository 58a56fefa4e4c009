// A program prepared for one instance: ops, operators, the plan of its values. It knows no op by name.
//
// Build() takes what follows from the graph alone, Prepare() lets every op check and ask, Bind() takes what they asked for. Arena
// and scratch are lent by the instance: its programs never run at the same time.
#ifndef TARN_RUNTIME_INTERPRETER_PROGRAM_H_
#define TARN_RUNTIME_INTERPRETER_PROGRAM_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/bump.h"
#include "core/result.h"
#include "runtime/interpreter/step_log.h"
#include "runtime/ops/op.h"
#include "runtime/planner/planner.h"

namespace tarn {

class PackedWeights;

// What programs are prepared for.
struct Environment {
  const Model* model;
  const Kernels* kernels;
  const DenseBackend* dense;
  const PackedWeights* packed;  // nullptr: only sizes are wanted
  Allocator allocator;          // for working memory during preparation
};

// How many tokens the sequences can take from a reset, or a source has at most, and the op that says so.
struct TokenBound {
  uint64_t tokens;  // UINT64_MAX: no bound
  const char* op;   // nullptr: no bound
};

// What a program takes, and the op that takes most of it.
struct TokenWork {
  uint64_t per_token;  // multiply-adds, an estimate; UINT64_MAX: more than 64 bits hold
  uint64_t largest;    // of that, by `op`
  const char* op;
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
  // What Bind() will want, known after Prepare().
  struct Needs {
    uint64_t bound;  // bytes that Bind() takes
    uint64_t arena;
    uint64_t scratch;
  };

  // Takes everything whose size follows from the graph alone; `states`: of all states of the model. Without memory it only counts,
  // and returns nullptr.
  static Program* Build(const Environment& environment, Stage stage, const Limits& limits, Span<StateBuffer> states, Bump& bump);
  // Errors: TARN_BAD_FORMAT, TARN_UNSUPPORTED, TARN_OUT_OF_MEMORY.
  Status Prepare();
  const Needs& needs() const { return needs_; }
  // Creates dense layers and constants. Errors: those of dense layers.
  Status Bind(Bump& bump);
  // Arena and scratch are as large as needs() says at least. AddressSanitizer has all of them poisoned from here on, but for what
  // is open: inputs, and after a run its outputs.
  void Attach(uint8_t* arena, uint8_t* scratch);
  void OpenInputs() const;
  // Destroys the dense layers; the memory is the instance's again.
  void Destroy();

  // Runs the ops. What differs from run to run stands in `context`: sequences, which take the same number of tokens, output_rows,
  // source and so on; the rest is filled in here. With output_rows 0 what only serves outputs is left out. Errors: TARN_CANCELLED,
  // TARN_INTERNAL: some ops have run, others have not.
  Status Run(RunContext context);
  // parts.cc. The same for sequences that may take different numbers of tokens.
  Status RunParts(RunContext context);

  // steps.cc. A log for runs of at most `max_steps` tokens of a program with batch 1, all of whose ops with states have a row per
  // token; only counts when `bump` has no block.
  void TakeStepLog(Bump* bump, size_t max_steps, StepLog* log, uint64_t most_copies) const;
  // As Run, for at most max_steps tokens, but ops with states take them step by step: rows get the bits that runs of single tokens
  // give. Takes the steps that wait in the log first. The states are those of no token until KeepSteps. Errors: TARN_INTERNAL, and
  // then for good.
  Status RunSteps(RunContext context, StepLog* log);
  // Keeps the first `kept` tokens of the last RunSteps, 1 to all of them. Where log->waiting is not 0, the states are those of no
  // token until the next RunSteps with this log, or TakeWaiting. Outputs stay as they are.
  void KeepSteps(StepLog* log, size_t kept);
  // Takes the steps that wait. Outputs stay as they are. Errors: TARN_INTERNAL.
  Status TakeWaiting(RunContext context, StepLog* log);

  // On: zeroes all counts and starts. Off: stops and keeps them.
  void Profile(bool on);
  uint32_t op_count() const { return static_cast<uint32_t>(nodes_.size()); }
  OpTime op_time(uint32_t index) const;  // index < op_count()

  // Calls visit(spec, packed_bytes) for every dense layer, and for weights that an op reads in place, in order. Errors: those of
  // `visit`.
  template <typename F>
  Status VisitDense(F visit) const {
    for (const Node& node : nodes()) {
      if (node.has_dense || node.reports_dense) TARN_RETURN_IF_ERROR(visit(node.dense_spec, node.packed_bytes));
    }
    return Ok();
  }

  const TokenBound& bound() const { return bound_; }
  // At the limits: of "encode" for the longest source.
  TokenWork work() const;

  // Program input i and output i, [batch, time, width], rows contiguous.
  uint8_t* input(uint32_t index) const { return arena_ + values_[index].offset; }
  const uint8_t* output(uint32_t index) const { return arena_ + values_[graph().outputs()->Get(index)].offset; }

 private:
  struct Node {
    Op* op;
    Span<Operand> inputs;
    Span<Operand> outputs;
    Span<const StateBuffer> states;
    DenseSpec dense_spec;
    const DenseBackend* dense_backend;
    DenseLayer* dense;  // nullptr: the op has none
    bool has_dense, reports_dense;
    bool serves_outputs;    // writes values of time Outputs
    uint64_t packed_bytes;  // of the dense layer, and:
    uint64_t layer_bytes;
    uint64_t scratch_bytes;  // of the op and its dense layer
    uint64_t constant_bytes;
    uint64_t runs;  // while profiled, as is:
    uint64_t ns;
  };

  Program(const Environment& environment, Stage stage, const Limits& limits)
      : environment_(environment), stage_(stage), limits_(limits) {}

  Status PrepareNode(uint32_t index);
  Status PlanValues();
  Status CreateDense(Bump& bump);
  void BindOperands();
  void FillContext(RunContext* context) const;
  // How nodes run: a pointer, so that a program without runs in steps or parts does not link them.
  struct Runner {
    Status (Program::*run)(Node& node, const RunContext& context, StepLog* log);
    StepLog* log;
  };
  Status RunAll(RunContext context, const Runner& runner);
  Status RunNodes(RunContext* context, const Runner& runner);
  Status RunNode(Node& node, const RunContext& context, StepLog* log = nullptr);
  Status RunNodeSteps(Node& node, const RunContext& context, StepLog* log);
  Status RunNodeParts(Node& node, const RunContext& context, StepLog* log);
  // Moves the operands of a node to the rows of other sequences.
  void MoveOperands(const Node& node, ptrdiff_t sequences, ptrdiff_t token_rows, size_t output_rows) const;
  // Rows of operands that steps take.
  struct StepRows {
    Span<Operand> inputs, outputs;
    size_t first, count;
  };
  Status TakeSteps(Node& node, const StepRows& rows, RunContext context);
  Status TakeRows(Node& node, const StepLog::Entry& entry, uint64_t tokens_seen, size_t count, RunContext context);
  uint64_t PlaceRows(const Node& node, bool of_inputs, uint64_t rows, float* place, Span<Operand> placed) const;
  // What AddressSanitizer lets a run touch: its inputs and outputs at its own number of rows, other values while they live, and of
  // scratch what the op that runs lays out.
  void OpenRun(const RunContext& context) const;
  void OpenNode(const Node& node, const RunContext& context) const;
  void CloseNode(const Node& node) const;
  void CloseRun(const RunContext& context) const;
  void OpenValue(uint32_t value, const RunContext& context) const;

  const format::Program& graph() const { return *environment_.model->program(stage_); }
  Span<const Node> nodes() const { return nodes_; }

  const Environment environment_;
  const Stage stage_;
  const Limits limits_;
  Span<Node> nodes_;
  Span<PlannedBuffer> values_;
  uint8_t* arena_ = nullptr;
  uint8_t* scratch_ = nullptr;
  Needs needs_{};
  bool profiled_ = false;
  TokenBound bound_{UINT64_MAX, nullptr};
  uint64_t work_ = 0;  // of a run at the limits
  uint64_t largest_work_ = 0;
  const char* largest_op_ = "";
};

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_PROGRAM_H_
