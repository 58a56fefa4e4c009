// Several tokens in one run with the bits of single steps, and the way back: what speculation stands on. A program without it does
// not link it.
#include <algorithm>
#include <cstring>

#include "runtime/session/session.h"

namespace tarn {

Result<uint32_t> Session::MaxSteps() const {
  TARN_RETURN_IF_ERROR(ExpectTask(format::Task::CausalLm));
  const Limits& limits = instance_->limits();
  if (limits.batch != 1) return Error(TARN_INVALID_ARGUMENT, "the session has %u sequences, 1 expected", limits.batch);
  return std::min(limits.max_chunk, limits.max_output_rows);
}

Result<const float*> Session::Steps(const int32_t* tokens, size_t count, StepLog* log) {
  TARN_ASSIGN_OR_RETURN(const uint32_t most, MaxSteps());
  if (count > most || count > log->max_steps) {
    return Error(TARN_INVALID_ARGUMENT, "%zu tokens in steps, at most %zu expected", count, std::min<size_t>(most, log->max_steps));
  }
  TARN_RETURN_IF_ERROR(ExpectDecoder());
  if (!instance_->steps_wait(log)) TARN_RETURN_IF_ERROR(MakeWhole());
  TARN_RETURN_IF_ERROR(CheckRoom(instance_->tokens_seen(), count));
  TARN_RETURN_IF_ERROR(CheckIds(tokens, count, model_.model().vocab_size(Stage::kDecode)));
  TARN_RETURN_IF_ERROR(TakeCancellation());
  std::memcpy(instance_->input(Stage::kDecode, 0), tokens, count * sizeof(int32_t));
  TARN_RETURN_IF_ERROR(instance_->DecodeSteps(count, log, threads_));
  return Logits(Stage::kDecode);
}

void Session::KeepSteps(size_t kept, StepLog* log) { instance_->KeepSteps(kept, log); }

}  // namespace tarn
