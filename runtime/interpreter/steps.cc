// Runs of a program in steps, and the way back from them (step_log.h).
#include <algorithm>
#include <cstring>

#include "runtime/interpreter/program.h"

namespace tarn {
namespace {

// Where states lie, each at a multiple of the alignment, from `place` on; returns how many bytes they take.
uint64_t PlaceStates(Span<const StateBuffer> states, uint8_t* place, Span<StateBuffer> placed) {
  uint64_t offset = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    const uint64_t bytes = states[i].bytes_per_sequence;
    if (!placed.empty()) placed[i] = {place + offset, bytes};
    offset += AlignUp(bytes);
  }
  return offset;
}

enum class Copy { kSave, kPutBack };

uint8_t* CopyBytes(Copy direction, uint8_t* state, uint8_t* saved, uint64_t bytes) {
  const size_t size = static_cast<size_t>(bytes);
  if (direction == Copy::kSave) {
    std::memcpy(saved, state, size);
  } else {
    std::memcpy(state, saved, size);
  }
  return saved + size;
}

void CopyStates(Span<const StateBuffer> from, Span<const StateBuffer> to) {
  for (size_t i = 0; i < from.size(); ++i) {
    std::memcpy(to[i].data, from[i].data, static_cast<size_t>(from[i].bytes_per_sequence));
  }
}

// What the step behind `tokens_seen` tokens writes.
void CopyWrites(Copy direction, const Op& op, uint64_t tokens_seen, Span<const StateBuffer> states, uint8_t* saved) {
  StateWrites writes;
  op.FindStepWrites(tokens_seen, &writes);
  for (const StateWrite& write : writes.all()) {
    const StateBuffer& state = states[write.state];
    for (uint64_t part = 0; part < write.parts; ++part) {
      const uint64_t begin = part * (state.bytes_per_sequence / write.parts) + write.begin;
      saved = CopyBytes(direction, state.data + begin, saved, write.bytes);
    }
  }
}

// Rows of an op's operands; those of a log lie without gaps.
void CopyRows(Span<const Operand> from, size_t from_row, Span<const Operand> to, size_t to_row, size_t count) {
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t width = std::min(from[i].stride, to[i].stride);
    for (size_t row = 0; row < count; ++row) {
      std::memcpy(to[i].f32() + (to_row + row) * to[i].stride, from[i].f32() + (from_row + row) * from[i].stride,
                  width * sizeof(float));
    }
  }
}

void MoveRows(Span<Operand> operands, ptrdiff_t rows) {
  for (Operand& operand : operands) operand.data = operand.f32() + rows * static_cast<ptrdiff_t>(operand.stride);
}

}  // namespace

void Program::TakeStepLog(Bump* bump, size_t max_steps, StepLog* log, uint64_t most_copies) const {
  log->max_steps = max_steps;
  size_t count = 0;
  uint64_t largest_copy = 0, all_copies = 0, row_floats = 0;
  for (const Node& node : nodes()) {
    count += !node.states.empty();
    if (node.states.empty() || node.op->step_write_bytes() > 0) continue;
    const uint64_t bytes = PlaceStates(node.states, nullptr, {});
    largest_copy = std::max(largest_copy, bytes);
    all_copies += bytes;
    row_floats = std::max(row_floats, PlaceRows(node, /*of_inputs=*/false, max_steps, nullptr, {}));
  }
  log->has_all_copies = all_copies <= most_copies;
  log->entries = TakeArray<StepLog::Entry>(*bump, count);
  uint8_t* copies = TakeArray<uint8_t>(*bump, log->has_all_copies ? all_copies : largest_copy).data();
  log->rows = TakeArray<float>(*bump, row_floats);
  size_t next = 0;
  for (const Node& node : nodes()) {
    if (node.states.empty()) continue;
    StepLog::Entry entry{};
    if (const uint64_t write_bytes = node.op->step_write_bytes(); write_bytes > 0) {
      entry.before = TakeArray<uint8_t>(*bump, max_steps * write_bytes);
    } else {
      entry.states = TakeArray<StateBuffer>(*bump, node.states.size());
      const uint64_t bytes = PlaceStates(node.states, copies, entry.states);
      if (log->has_all_copies && copies != nullptr) copies += bytes;
      entry.inputs = TakeArray<Operand>(*bump, node.inputs.size());
      entry.outputs = TakeArray<Operand>(*bump, node.outputs.size());
      const uint64_t floats = PlaceRows(node, /*of_inputs=*/true, max_steps, nullptr, {});
      PlaceRows(node, /*of_inputs=*/true, max_steps, TakeArray<float>(*bump, floats).data(), entry.inputs);
      PlaceRows(node, /*of_inputs=*/false, max_steps, log->rows.data(), entry.outputs);
    }
    if (!log->entries.empty()) log->entries[next++] = entry;
  }
}

// Where rows of a node's operands lie, from `place` on; returns how many floats they take.
uint64_t Program::PlaceRows(const Node& node, bool of_inputs, uint64_t rows, float* place, Span<Operand> placed) const {
  const format::Op& op = *graph().ops()->Get(static_cast<uint32_t>(&node - nodes_.data()));
  const size_t count = of_inputs ? node.inputs.size() : node.outputs.size();
  uint64_t offset = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t width = of_inputs ? op.inputs()->Get(i)->width() : graph().values()->Get(op.outputs()->Get(i))->width();
    if (!placed.empty()) placed[i] = {place + offset, width};
    offset += width * rows;
  }
  return offset;
}

Status Program::RunSteps(RunContext context, StepLog* log) {
  context.tokens = context.sequences[0].tokens;
  log->steps = context.tokens;
  log->tokens_seen = context.tokens_seen(0);
  log->reached = 0;
  const Status status = RunAll(context, {&Program::RunNodeSteps, log});
  log->waiting = 0;
  return status;
}

// A node with states: step by step, so that each token has the bits of a run of its own.
Status Program::RunNodeSteps(Node& node, const RunContext& context, StepLog* log) {
  if (node.states.empty()) return RunNode(node, context);
  const StepLog::Entry& entry = log->entries[log->reached++];
  const uint64_t write_bytes = node.op->step_write_bytes();
  if (write_bytes == 0) {
    CopyRows(node.inputs, 0, entry.inputs, log->waiting, 1);
    TARN_RETURN_IF_ERROR(TakeRows(node, entry, log->tokens_seen - log->waiting, log->waiting + 1, context));
    CopyRows(entry.outputs, log->waiting, node.outputs, 0, 1);
    if (context.tokens == 1) return Ok();
    CopyStates(node.states, entry.states);
    CopyRows(node.inputs, 1, entry.inputs, 0, context.tokens - 1);
    RunContext drafts = context;
    if (!log->has_all_copies) drafts.states = entry.states;
    return TakeSteps(node, {node.inputs, node.outputs, 1, context.tokens - 1}, drafts);
  }
  // A ring may be shorter than the run: each step keeps what the one before it left.
  for (size_t t = 0; t < context.tokens; ++t) {
    CopyWrites(Copy::kSave, *node.op, log->tokens_seen + t, node.states, entry.before.data() + t * write_bytes);
    TARN_RETURN_IF_ERROR(TakeSteps(node, {node.inputs, node.outputs, t, 1}, context));
  }
  return Ok();
}

// Row 0 of a run is that of the token behind `context.tokens_seen`.
Status Program::TakeSteps(Node& node, const StepRows& rows, RunContext context) {
  const uint64_t seen = context.tokens_seen(0);
  context.steps = node.op->runs_steps();
  const size_t together = context.steps ? rows.count : 1;
  context.tokens = context.token_rows = together;
  context.inputs = rows.inputs;
  context.outputs = rows.outputs;
  for (size_t t = rows.first; t < rows.first + rows.count; t += together) {
    const RunSequence sequence{seen + t, 0, static_cast<uint32_t>(together)};
    context.sequences = {&sequence, 1};
    MoveRows(rows.inputs, static_cast<ptrdiff_t>(t));
    MoveRows(rows.outputs, static_cast<ptrdiff_t>(t));
    const Status status = RunNode(node, context);
    MoveRows(rows.inputs, -static_cast<ptrdiff_t>(t));
    MoveRows(rows.outputs, -static_cast<ptrdiff_t>(t));
    TARN_RETURN_IF_ERROR(status);
  }
  return Ok();
}

// The first `count` rows of an entry, on the states.
Status Program::TakeRows(Node& node, const StepLog::Entry& entry, uint64_t tokens_seen, size_t count, RunContext context) {
  const RunSequence behind{tokens_seen, 0, static_cast<uint32_t>(count)};
  context.sequences = {&behind, 1};
  return TakeSteps(node, {entry.inputs, entry.outputs, 0, count}, context);
}

void Program::KeepSteps(StepLog* log, size_t kept) {
  size_t next = 0;
  for (Node& node : nodes_) {
    if (node.states.empty()) continue;
    const StepLog::Entry& entry = log->entries[next++];
    const uint64_t write_bytes = node.op->step_write_bytes();
    if (write_bytes == 0) {
      if (log->has_all_copies && kept < log->steps) CopyStates(entry.states, node.states);
    } else {
      for (size_t t = log->steps; t-- > kept;) {
        CopyWrites(Copy::kPutBack, *node.op, log->tokens_seen + t, node.states, entry.before.data() + t * write_bytes);
      }
    }
  }
  log->waiting = log->has_all_copies && kept == log->steps ? 0 : kept - 1;
  log->steps = kept;
}

Status Program::TakeWaiting(RunContext context, StepLog* log) {
  FillContext(&context);
  context.output_rows = 0;
  size_t next = 0;
  for (Node& node : nodes_) {
    if (node.states.empty()) continue;
    const StepLog::Entry& entry = log->entries[next++];
    if (node.op->step_write_bytes() > 0) continue;
    context.states = node.states;
    context.scratch = {scratch_, static_cast<size_t>(node.scratch_bytes)};
    TARN_RETURN_IF_ERROR(TakeRows(node, entry, log->tokens_seen + 1, log->waiting, context));
    if (kPoisons) Poison(scratch_, node.scratch_bytes);
  }
  log->waiting = 0;
  return Ok();
}

}  // namespace tarn
