// The tests of tarn bench, as they run.
#include <tarn/inspect.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>

#include "tools/common/printable.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/tarn/bandwidth.h"
#include "tools/tarn/bench.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/error.h"
#include "tools/tarn/process_memory.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

constexpr uint32_t kWarmUpSteps = 16;
constexpr uint32_t kChunksAtOnce = 16;  // on the way to a depth, between two looks at Ctrl-C

void StopIfInterrupted() {
  if (tarn::tools::Interrupted()) throw Failure("interrupted");
}

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
    const uint64_t most = model.info().max_tokens;
    const bool by_token = caches.count(OwnerOf(info.name)) != 0 && info.rank == 3 && info.shape[1] == most;
    used += by_token ? info.data_bytes / most * std::min(tokens, most) : info.data_bytes;
  }
}

// A model with a number of threads.
class Bench {
 public:
  Bench(const BenchOptions& options, const Model& model, uint32_t threads, const MemoryBandwidth& memory)
      : options_(options), model_(model), memory_bandwidth_(memory.by_threads.at(threads)) {
    config_ = SessionConfig({threads, options.chunk});
    memory_ = model.Requirements(config_);
    session_ = CreateSession(model, config_);
    // Ids that no cache can guess.
    tokens_.resize(std::max({options.prompt_tokens, options.generated_tokens, kChunksAtOnce * options.chunk}));
    uint32_t random = 1;
    for (int32_t& token : tokens_) {
      random = random * 1664525u + 1013904223u;
      token = static_cast<int32_t>((random >> 8) % model.info().vocab_size);
    }
    SampleMemory();
  }

  // Nothing if the model does not take so many tokens; says so.
  std::optional<BenchRow> Run(bool decode, uint64_t depth) {
    BenchRow row = Row(decode, depth);
    const uint64_t needed = depth + row.tokens;
    if (needed > model_.info().max_tokens) {
      std::fprintf(stderr, "bench: %s: %s at depth %llu left out: it needs %llu tokens, the model takes %llu\n",
                   tarn::tools::Printable(row.model).c_str(), row.Test().c_str(), static_cast<unsigned long long>(depth),
                   static_cast<unsigned long long>(needed), static_cast<unsigned long long>(model_.info().max_tokens));
      return std::nullopt;
    }
    if (row.bytes_per_token && !bandwidth_) bandwidth_ = std::make_unique<ReadBandwidth>(*row.bytes_per_token, config_.threads);
    // A model without a bound goes on from test to test: the depth is no part of what a token costs it.
    if (!row.bounded && depth != reached_) GoTo(depth);
    reached_ = depth;
    WarmUp(row);
    for (uint32_t i = 0; i < options_.repetitions; ++i) {
      if (row.bounded) GoTo(depth);
      if (row.bytes_per_token) row.bandwidths.push_back(bandwidth_->Measure());
      row.rates.push_back(row.tokens / Time(row));
      SampleMemory();
    }
    if (options_.profile) Profile(&row);
    row.peak_anonymous = peak_anonymous_;
    return row;
  }

 private:
  BenchRow Row(bool decode, uint64_t depth) const {
    const tarn_model_info& info = model_.info();
    BenchRow row = {};
    row.path = options_.model.path;
    row.model = info.name;
    row.precision = info.precision;
    row.file_bytes = memory_.mapped_bytes;
    row.parameters = info.parameters;
    row.dense = info.dense;
    row.isa = info.isa;
    row.bounded = info.max_tokens != UINT64_MAX;
    row.threads = config_.threads;
    row.decode = decode;
    row.tokens = decode ? options_.generated_tokens : options_.prompt_tokens;
    row.depth = depth;
    row.state_bytes = memory_.state_bytes;
    row.used_state_bytes = UsedStateBytes(model_, depth + row.tokens);
    if (decode && !row.bounded) row.bytes_per_token = BytesPerToken(options_.model, config_);
    row.memory_bandwidth = memory_bandwidth_;
    return row;
  }

  // To a sequence of `depth` tokens: onwards if it is shorter, else from the start.
  void GoTo(uint64_t depth) {
    uint64_t at = tarn_session_tokens(session_.get());
    if (at > depth || model_.info().max_tokens != UINT64_MAX) {
      tarn_session_reset(session_.get());
      at = 0;
    }
    tarn::tools::Progress progress(stderr, isatty(STDERR_FILENO) == 1,
                                   Format("to depth %llu", static_cast<unsigned long long>(depth)), depth - at);
    while (at < depth) {
      StopIfInterrupted();
      const uint64_t count = std::min<uint64_t>(uint64_t{kChunksAtOnce} * options_.chunk, depth - at);
      Feed(count);
      at += count;
      progress.Advance(count);
    }
  }

  void Feed(uint64_t count) {
    tarn_error error;
    Check(tarn_session_prefill(session_.get(), tokens_.data(), count, nullptr, &error), error);
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
    if (row.decode) {
      Step(std::min(row.tokens, kWarmUpSteps));
    } else {
      Feed(row.tokens);
    }
    SampleMemory();
  }

  double Time(const BenchRow& row) {
    StopIfInterrupted();
    const Clock::time_point start = Clock::now();
    if (row.decode) {
      Step(row.tokens);
    } else {
      Feed(row.tokens);
    }
    return SecondsSince(start);
  }

  // In a repetition of its own: readings of the clock would be part of the others.
  void Profile(BenchRow* row) {
    if (row->bounded) GoTo(row->depth);
    tarn_error error;
    Check(tarn_session_profile(session_.get(), 1, &error), error);
    row->profiled_ns = static_cast<uint64_t>(1e9 * Time(*row));
    Check(tarn_session_profile(session_.get(), 0, &error), error);
    std::map<std::string, KindTime> kinds;
    for (size_t i = 0;; ++i) {
      tarn_op_time time = {};
      time.struct_size = sizeof(time);
      const tarn_status status = tarn_session_op_time(session_.get(), i, &time, &error);
      if (status == TARN_NOT_FOUND) break;
      Check(status, error);
      KindTime& kind = kinds[time.kind];
      kind.kind = time.kind;
      kind.runs += time.runs;
      kind.ns += time.ns;
    }
    for (const auto& [name, time] : kinds) row->profile.push_back(time);
    std::sort(row->profile.begin(), row->profile.end(), [](const KindTime& a, const KindTime& b) { return a.ns > b.ns; });
  }

  // The buffers of the bandwidth are ours, not the model's.
  void SampleMemory() {
    const std::optional<uint64_t> pages = AnonymousPages();
    if (!pages) return;
    const uint64_t bytes = *pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t ours = std::min(bytes, bandwidth_ ? bandwidth_->anonymous_bytes() : 0);
    peak_anonymous_ = std::max(peak_anonymous_.value_or(0), bytes - ours);
  }

  const BenchOptions& options_;
  const Model& model_;
  const double memory_bandwidth_;
  tarn_session_config config_ = TARN_SESSION_CONFIG_INIT;
  tarn_memory memory_ = TARN_MEMORY_INIT;
  Session session_{nullptr, tarn_session_destroy};
  std::vector<int32_t> tokens_;
  std::unique_ptr<ReadBandwidth> bandwidth_;
  std::optional<uint64_t> reached_;  // the last depth that a test wanted
  std::optional<uint64_t> peak_anonymous_;
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

bool RunBench(const BenchOptions& options, const std::string& path, const MemoryBandwidth& memory,
              const std::function<bool(const BenchRow&)>& row) {
  BenchOptions its_options = options;
  its_options.model.path = path;
  const Model model(its_options.model);
  for (const uint32_t threads : options.threads) {
    Bench bench(its_options, model, threads, memory);
    for (const uint32_t depth : options.depths) {
      for (const bool decode : {false, true}) {
        if ((decode ? options.generated_tokens : options.prompt_tokens) == 0) continue;
        const std::optional<BenchRow> done = bench.Run(decode, depth);
        if (done && !row(*done)) return false;
      }
    }
  }
  return true;
}

// ---- What a row says ----

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string BenchRow::Test() const { return (decode ? "tg" : "pp") + std::to_string(tokens); }

std::optional<double> BenchRow::FirstTokenMs() const {
  if (decode) return std::nullopt;
  return 1000 * tokens / Median(rates);
}

std::optional<double> BenchRow::BytesPerSecond() const {
  if (!bytes_per_token) return std::nullopt;
  return static_cast<double>(*bytes_per_token) * Median(rates);
}

std::optional<double> BenchRow::BandwidthShare() const {
  if (!bytes_per_token) return std::nullopt;
  return *BytesPerSecond() / Median(bandwidths);
}

}  // namespace tarn_cli
