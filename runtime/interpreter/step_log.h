// What a run in steps leaves behind (Program::RunSteps), so that its last steps can be taken back.
//
//   of each op with states:  [ states before the run | rows of its inputs ]   or   [ what each step wrote over ]
//
// An op whose step writes a few rows, a cache, keeps the bytes that were there: they are put back from the last step on. Any other
// op keeps its states as they were before the run and the rows that it read, and does the steps that stay once more: that reads
// no weights, and costs less than a copy of the states after every step.
#ifndef TARN_RUNTIME_INTERPRETER_STEP_LOG_H_
#define TARN_RUNTIME_INTERPRETER_STEP_LOG_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/ops/op.h"

namespace tarn {

struct StepLog {
  // Of one op with states.
  struct Entry {
    Span<uint8_t> before;   // its states, or [max_steps, step_write_bytes]
    Span<Operand> inputs;   // [max_steps, width] each; empty where nothing is done once more
    Span<Operand> outputs;  // of a step that is done once more: one row, which nobody reads
  };

  Span<Entry> entries;  // in the order of the ops
  size_t max_steps = 0;
  // Of the last run:
  size_t steps = 0;
  uint64_t tokens_seen = 0;  // before it
  size_t saved = 0;          // entries that have what was there before it
};

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_STEP_LOG_H_
