// What the tests of tarn bench measure alike, whatever the model is for.
#ifndef TARN_TOOLS_TARN_BENCH_MEASURE_H_
#define TARN_TOOLS_TARN_BENCH_MEASURE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tools/tarn/bench.h"

namespace tarn_cli {

// Ids that no cache can guess, the same each time.
std::vector<int32_t> RandomIds(size_t count, uint32_t vocab_size);

// Anonymous memory of the process at its most.
class PeakMemory {
 public:
  // `ours` of it is not the model's.
  void Sample(uint64_t ours = 0);
  std::optional<uint64_t> bytes() const { return bytes_; }

 private:
  std::optional<uint64_t> bytes_;
};

// A row with what it says about the model; `memory` is that of the session.
BenchRow ModelRow(const BenchOptions& options, const Model& model, const tarn_memory& memory);

// Whether a test that needs so many tokens can be run; where it cannot, it is named on standard error.
bool Fits(const BenchRow& row, uint64_t needed, uint64_t most);

// Fills in the profile of `row` from one more repetition, which `time` runs: readings of the clock would be part of the others.
void Profile(tarn_session* session, const std::function<double()>& time, BenchRow* row);

// The tests of a model that encodes, with a number of threads. As RunBench().
bool RunSourceBench(const BenchOptions& options, const Model& model, uint32_t threads, const MemoryBandwidth& memory,
                    const std::function<bool(const BenchRow&)>& row);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_BENCH_MEASURE_H_
