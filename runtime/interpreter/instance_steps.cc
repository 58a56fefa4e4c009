// Runs of an instance in steps, and the way back from them. A program without them does not link it.
#include "runtime/interpreter/instance.h"

namespace tarn {

Status Instance::DecodeSteps(size_t tokens, StepLog* log, const ThreadPool& threads) {
  Program& program = *programs_[static_cast<size_t>(Stage::kDecode)];
  const Status status = program.RunSteps(DecodeAll(tokens, /*output_rows=*/tokens, threads), log);
  OpenInputs();
  if (!status.ok()) {
    RunContext context = DecodeAll(1, 0, threads);
    context.cancellation = nullptr;
    progress_[0].broken_off = 1;
    TARN_RETURN_IF_ERROR(program.KeepSteps(context, log, 0));
    progress_[0].broken_off = 0;
    return status;
  }
  progress_[0].broken_off = 1;  // until KeepSteps
  return Ok();
}

Status Instance::KeepSteps(size_t kept, StepLog* log, const ThreadPool& threads) {
  RunContext context = DecodeAll(1, 0, threads);
  context.cancellation = nullptr;
  TARN_RETURN_IF_ERROR(programs_[static_cast<size_t>(Stage::kDecode)]->KeepSteps(context, log, kept));
  progress_[0] = {log->tokens_seen + kept, /*broken_off=*/0};
  return Ok();
}

}  // namespace tarn
