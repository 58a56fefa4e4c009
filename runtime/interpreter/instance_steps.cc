// Runs of an instance in steps, and the way back from them. A program without them does not link it.
#include "runtime/interpreter/instance.h"

namespace tarn {

Status Instance::DecodeSteps(size_t tokens, StepLog* log, const ThreadPool& threads) {
  RunContext context = DecodeAll(tokens, /*output_rows=*/tokens, threads);
  context.cancellation = nullptr;  // the way back begins behind a whole run
  if (!steps_wait(log)) log->waiting = 0;
  progress_[0].rest = SequenceProgress::kBrokenOff;  // until KeepSteps
  const Status status = programs_[static_cast<size_t>(Stage::kDecode)]->RunSteps(context, log);
  OpenInputs();
  return status;
}

void Instance::KeepSteps(size_t kept, StepLog* log) {
  programs_[static_cast<size_t>(Stage::kDecode)]->KeepSteps(log, kept);
  progress_[0] = {log->tokens_seen + kept, log->waiting > 0 ? SequenceProgress::kStepsWait : SequenceProgress::kWhole};
  log_ = log;
  take_steps_ = TakeStepsOf;
}

Status Instance::TakeStepsOf(Instance* instance, const ThreadPool& threads) {
  RunContext context = instance->DecodeAll(1, 0, threads);
  context.cancellation = nullptr;
  instance->progress_[0].rest = SequenceProgress::kBrokenOff;
  TARN_RETURN_IF_ERROR(instance->programs_[static_cast<size_t>(Stage::kDecode)]->TakeWaiting(context, instance->log_));
  instance->progress_[0].rest = SequenceProgress::kWhole;
  return Ok();
}

}  // namespace tarn
