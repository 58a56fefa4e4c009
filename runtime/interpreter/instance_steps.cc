// Runs of an instance in steps, and the way back from them. A program without them does not link it.
#include "runtime/interpreter/instance.h"

namespace tarn {

Status Instance::DecodeSteps(size_t tokens, StepLog* log, const ThreadPool& threads) {
  RunContext context = DecodeAll(tokens, /*output_rows=*/tokens, threads);
  context.cancellation = nullptr;  // the way back begins behind a whole run
  progress_[0].broken_off = 1;     // until KeepSteps
  const Status status = programs_[static_cast<size_t>(Stage::kDecode)]->RunSteps(context, log);
  OpenInputs();
  return status;
}

Status Instance::KeepSteps(size_t kept, StepLog* log, const ThreadPool& threads) {
  RunContext context = DecodeAll(1, 0, threads);
  context.cancellation = nullptr;
  TARN_RETURN_IF_ERROR(programs_[static_cast<size_t>(Stage::kDecode)]->KeepSteps(context, log, kept));
  progress_[0] = {log->tokens_seen + kept, /*broken_off=*/0};
  return Ok();
}

}  // namespace tarn
