// The tests of tarn bench with causal models, as they run; bench_source.cc has those of the others.
#include <tarn/inspect.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "tools/common/progress.h"
#include "tools/tarn/bandwidth.h"
#include "tools/tarn/bench.h"
#include "tools/tarn/bench_measure.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/error.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr uint32_t kWarmUpSteps = 16;
constexpr uint32_t kChunksAtOnce = 16;  // on the way to a depth, between two looks at Ctrl-C

// What one step reads and writes: the weights of the dense layers once, all of the state twice. A cache file is more than the
// weights in it, so the question is what they would be without one.
uint64_t BytesPerToken(ModelOptions options, const tarn_session_config& config) {
  options.packed_cache = "none";
  const tarn_memory memory = Requirements(options, config);
  return memory.packed_anonymous_bytes + memory.in_place_bytes + 2 * memory.state_bytes;
}

// The op that a state belongs to: "layers.0.attn.K" is the K of "layers.0.attn".
std::string OwnerOf(const std::string& state) { return state.substr(0, state.rfind('.')); }

// Of a cache with a row per token that the model can take ([heads, rows, width]), the rows in use; all of every other state.
uint64_t UsedStateBytes(const Model& model, uint64_t tokens) {
  std::set<std::string> caches;
  for (const tarn_op_info& op : List(model, tarn_model_op)) {
    if (std::string(op.kind) == "cache_attention") caches.insert(op.name);
  }
  uint64_t used = 0;
  for (size_t i = 0;; ++i) {
    tarn_state_info info = {};
    info.struct_size = sizeof(info);
    tarn_error error;
    const tarn_status status = tarn_model_state(model.get(), i, &info, &error);
    if (status == TARN_NOT_FOUND) return used;
    Check(status, error);
    const uint64_t most = model.info().max_context;
    const bool by_token = caches.count(OwnerOf(info.name)) != 0 && info.rank == 3 && info.shape[1] == most;
    used += by_token ? info.data_bytes / most * std::min(tokens, most) : info.data_bytes;
  }
}

// The tests in their order.
std::vector<BenchWork> Works(const BenchOptions& options) {
  std::vector<BenchWork> works;
  for (const uint32_t prompt : options.prompts) works.push_back({prompt, 0});
  for (const uint32_t generated : options.generated) works.push_back({0, generated});
  works.insert(works.end(), options.both.begin(), options.both.end());
  works.erase(std::remove_if(works.begin(), works.end(), [](const BenchWork& work) { return work.tokens() == 0; }), works.end());
  return works;
}

// A model with a number of threads.
class Bench {
 public:
  Bench(const BenchOptions& options, const Model& model, uint32_t threads, const MemoryBandwidth& memory)
      : options_(options), model_(model), memory_bandwidth_(memory.by_threads.at(threads)) {
    config_ = SessionConfig({threads, options.chunk});
    memory_ = model.Requirements(config_);
    session_ = CreateSession(model, config_);
    uint32_t longest = kChunksAtOnce * options.chunk;
    for (const BenchWork& work : Works(options)) longest = std::max({longest, work.prompt, work.generated});
    tokens_ = RandomIds(longest, model.info().vocab_size);
    SampleMemory();
  }

  // Nothing if the model does not take so many tokens; says so.
  std::optional<BenchRow> Run(const BenchWork& work, uint64_t depth) {
    BenchRow row = Row(work, depth);
    if (!Fits(row, depth + work.tokens(), model_.info().max_context)) return std::nullopt;
    if (row.bytes_per_token && !bandwidth_) bandwidth_ = std::make_unique<ReadBandwidth>(*row.bytes_per_token, config_.threads);
    // A model without a bound goes on from test to test: the depth is no part of what a token costs it.
    if (!row.bounded && depth != reached_) GoTo(depth);
    reached_ = depth;
    WarmUp(row);
    for (uint32_t i = 0; i < options_.repetitions; ++i) {
      if (row.bounded) GoTo(depth);
      if (row.bytes_per_token) row.bandwidths.push_back(bandwidth_->Measure());
      row.rates.push_back(work.tokens() / Time(work));
      SampleMemory();
    }
    if (options_.profile) {
      if (row.bounded) GoTo(depth);
      Profile(
          session_.get(), [&] { return Time(work); }, &row);
    }
    row.peak_anonymous = peak_.bytes();
    return row;
  }

 private:
  BenchRow Row(const BenchWork& work, uint64_t depth) const {
    BenchRow row = ModelRow(options_, model_, memory_);
    row.threads = config_.threads;
    row.work = work;
    row.batch = 1;
    row.depth = depth;
    row.used_state_bytes = UsedStateBytes(model_, depth + work.tokens());
    if (row.decode() && !row.bounded) row.bytes_per_token = BytesPerToken(options_.model, config_);
    row.memory_bandwidth = memory_bandwidth_;
    return row;
  }

  // To a sequence of `depth` tokens: onwards if it is shorter, else from the start.
  void GoTo(uint64_t depth) {
    uint64_t at = tarn_session_tokens(session_.get());
    if (at > depth || model_.info().max_context != UINT64_MAX) {
      tarn_session_reset(session_.get());
      at = 0;
    }
    tarn::tools::Progress progress(stderr, isatty(STDERR_FILENO) == 1,
                                   Format("to depth %llu", static_cast<unsigned long long>(depth)), depth - at, "tokens");
    while (at < depth) {
      StopIfInterrupted();
      const uint64_t count = std::min<uint64_t>(uint64_t{kChunksAtOnce} * options_.chunk, depth - at);
      Feed(count);
      at += count;
      progress.Advance(count);
    }
  }

  void Feed(uint64_t count) {
    const uint64_t piece = uint64_t{kChunksAtOnce} * options_.chunk;
    tarn_error error;
    for (uint64_t at = 0; at < count; at += piece) {
      StopIfInterrupted();
      Check(tarn_session_prefill(session_.get(), &tokens_[at], std::min(piece, count - at), nullptr, &error), error);
    }
  }

  void Step(uint32_t count) {
    tarn_error error;
    for (uint32_t i = 0; i < count; ++i) {
      StopIfInterrupted();
      Check(tarn_session_step(session_.get(), &tokens_[i], nullptr, &error), error);
    }
  }

  // The first run touches memory that the later ones find.
  void WarmUp(const BenchRow& row) {
    if (row.bounded) tarn_session_reset(session_.get());
    Feed(row.work.prompt);
    Step(std::min(row.work.generated, kWarmUpSteps));
    SampleMemory();
  }

  double Time(const BenchWork& work) {
    StopIfInterrupted();
    const Clock::time_point start = Clock::now();
    Feed(work.prompt);
    Step(work.generated);
    return SecondsSince(start);
  }

  // The buffers of the bandwidth are ours, not the model's.
  void SampleMemory() { peak_.Sample(bandwidth_ ? bandwidth_->anonymous_bytes() : 0); }

  const BenchOptions& options_;
  const Model& model_;
  const double memory_bandwidth_;
  tarn_session_config config_ = TARN_SESSION_CONFIG_INIT;
  tarn_memory memory_ = TARN_MEMORY_INIT;
  Session session_;
  std::vector<int32_t> tokens_;
  std::unique_ptr<ReadBandwidth> bandwidth_;
  std::optional<uint64_t> reached_;  // the last depth that a test wanted
  PeakMemory peak_;
};

}  // namespace

MemoryBandwidth MeasureMemory(uint64_t size_bytes, const std::vector<uint32_t>& threads) {
  // On a small device a part of what it has.
  const uint64_t physical = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  MemoryBandwidth memory{std::min(size_bytes, physical / 8), {}};
  for (const uint32_t count : threads) {
    if (memory.by_threads.count(count) != 0) continue;
    memory.by_threads[count] = ReadBandwidth(memory.size_bytes, count).Measure();
    StopIfInterrupted();
  }
  return memory;
}

namespace {

bool RunCausalBench(const BenchOptions& options, const Model& model, uint32_t threads, const MemoryBandwidth& memory,
                    const std::function<bool(const BenchRow&)>& row) {
  Bench bench(options, model, threads, memory);
  for (const uint32_t depth : options.depths) {
    for (const BenchWork& work : Works(options)) {
      const std::optional<BenchRow> done = bench.Run(work, depth);
      if (done && !row(*done)) return false;
    }
  }
  return true;
}

}  // namespace

bool RunBench(const BenchOptions& options, const std::string& path, const MemoryBandwidth& memory,
              const std::function<bool(const BenchRow&)>& row) {
  BenchOptions its_options = options;
  its_options.model.path = path;
  const Model model(its_options.model);
  options.by_task.Check("bench", model.info().task);
  const auto run = model.info().task == TARN_TASK_CAUSAL_LM ? RunCausalBench : RunSourceBench;
  for (const uint32_t threads : options.threads) {
    if (!run(its_options, model, threads, memory, row)) return false;
  }
  return true;
}

}  // namespace tarn_cli
