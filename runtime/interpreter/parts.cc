// Runs of a program over sequences that take different numbers of tokens. Ops that run by rows see the rows of all of them, so that
// weights are read once. Others see parts: sequences side by side that take the same number.
#include "runtime/interpreter/program.h"
#include "runtime/platform/clock.h"

namespace tarn {

Status Program::RunParts(RunContext context) { return RunAll(context, {&Program::RunNodeParts, nullptr}); }

void Program::MoveOperands(const Node& node, ptrdiff_t sequences, ptrdiff_t token_rows, size_t output_rows) const {
  const format::Op& op = *graph().ops()->Get(static_cast<uint32_t>(&node - nodes_.data()));
  const auto move = [&](Operand& operand, uint32_t value) {
    const Axis axis = Axis::Of(*graph().values()->Get(value));
    const auto rows = axis.time == format::Time::Tokens    ? token_rows
                      : axis.time == format::Time::Outputs ? sequences * static_cast<ptrdiff_t>(output_rows)
                                                           : sequences * static_cast<ptrdiff_t>(axis.fixed_rows);
    operand.data = operand.f32() + rows * static_cast<ptrdiff_t>(operand.stride);
  };
  for (uint32_t i = 0; i < node.inputs.size(); ++i) move(node.inputs[i], op.inputs()->Get(i)->value());
  for (uint32_t i = 0; i < node.outputs.size(); ++i) move(node.outputs[i], op.outputs()->Get(i));
}

Status Program::RunNodeParts(Node& node, const RunContext& of_run, StepLog*) {
  if (node.op->runs_by_rows()) return RunNode(node, of_run);
  const uint64_t start = profiled_ ? MonotonicNs() : 0;
  RunContext context = of_run;
  ptrdiff_t rows = 0;  // before the part
  Status status;
  for (size_t first = 0; status.ok() && first < of_run.batch; first += context.batch) {
    context.tokens = of_run.sequences[first].tokens;
    context.batch = 1;
    while (first + context.batch < of_run.batch && of_run.sequences[first + context.batch].tokens == context.tokens)
      ++context.batch;
    context.sequences = of_run.sequences.subspan(first, context.batch);
    context.token_rows = context.batch * context.tokens;
    MoveOperands(node, static_cast<ptrdiff_t>(first), rows, of_run.output_rows);
    status = node.op->Run(context);
    MoveOperands(node, -static_cast<ptrdiff_t>(first), -rows, of_run.output_rows);
    rows += static_cast<ptrdiff_t>(context.token_rows);
  }
  if (profiled_) {
    node.ns += MonotonicNs() - start;
    ++node.runs;
  }
  return status;
}

}  // namespace tarn
