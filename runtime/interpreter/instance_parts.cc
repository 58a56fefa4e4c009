// An instance whose sequences come and go on their own. A program that runs them in lockstep does not link it.
#include <cstring>

#include "runtime/interpreter/instance.h"

namespace tarn {

Status Instance::DecodeParts(size_t count, size_t output_rows, const ThreadPool& threads) {
  return RunDecode(&Program::RunParts, DecodeContext(count, output_rows, threads));
}

void Instance::ResetSequence(uint32_t sequence) {
  progress_[sequence] = {};
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (environment_.model->state(i).owner == format::Owner::Source) continue;
    std::memset(states_[i].bytes(sequence), 0, static_cast<size_t>(states_[i].bytes_per_sequence));
  }
}

}  // namespace tarn
