// What a run in steps leaves behind (Program::RunSteps), so that only some of its steps are kept: the first one, and some behind
// it.
//
//   of each op with states:  [ rows of its inputs ]   or   [ what each step wrote over ]
//
// An op whose step writes a few rows, a cache, keeps the bytes that were there: they are put back from the last step on. Any other
// op keeps a copy of its states from behind the first step, which always stays, and the rows that the other steps read. If all
// steps stay, that is all. Else the copy is put back, and those of the steps that stay wait: the next run takes them with its own
// first step, in one pass over the states, or whatever else reads the states takes them first. That reads no weights. Where states
// are large there is one place for a copy, which stays in the CPU's caches: the steps behind the first one work on the copy, the
// next op overwrites it, and those that stay wait.
#ifndef TARN_RUNTIME_INTERPRETER_STEP_LOG_H_
#define TARN_RUNTIME_INTERPRETER_STEP_LOG_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/ops/op.h"

namespace tarn {

struct StepLog {
  // There are copies of all states if they take no more: what the CPU's second cache holds, so that a copy does not go to memory.
  static constexpr uint64_t kMostCopies = uint64_t{1} << 20;

  // Of one op with states.
  struct Entry {
    Span<uint8_t> before;      // [max_steps, step_write_bytes]; empty where steps can wait, and only there:
    Span<StateBuffer> states;  // places of the copies
    Span<Operand> inputs;      // [max_steps, width] each, of all steps but the first, or of those that wait and the first one
    Span<Operand> outputs;     // [max_steps, width] each, of steps that waited and the first one, in `rows`
  };

  Span<Entry> entries;          // in the order of the ops
  Span<float> rows;             // outputs of one op at a time
  bool has_all_copies = false;  // of the states of every op; else a place for those of one op
  size_t max_steps = 0;
  // Of the last run:
  size_t waiting = 0;  // steps behind its first one, which stay and are not in the states yet
  size_t steps = 0;
  uint64_t tokens_seen = 0;  // before it
  size_t reached = 0;        // entries of ops that ran
};

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_STEP_LOG_H_
