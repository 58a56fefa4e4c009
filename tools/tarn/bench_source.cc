// The tests of tarn bench with models that encode: sources, and single steps after them.
#include <algorithm>

#include "tools/tarn/bench_measure.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

constexpr uint32_t kWarmUpSteps = 16;

// A model with a number of threads, and sources of one length.
class SourceBench {
 public:
  SourceBench(const BenchOptions& options, const Model& model, uint32_t threads, uint32_t source_tokens,
              const MemoryBandwidth& memory)
      : options_(options),
        model_(model),
        memory_bandwidth_(memory.by_threads.at(threads)),
        source_tokens_(std::max(source_tokens, 1u)) {
    config_ = SessionConfig({threads, options.chunk});
    // A masked model takes one source after the other.
    config_.batch = model.info().task == TARN_TASK_MASKED_LM ? 1 : options.batch;
    config_.max_source = source_tokens_;
    memory_ = model.Requirements(config_);
    session_ = CreateSession(model, config_);
    sources_ = RandomIds(size_t{options.batch} * source_tokens_, model.info().source_vocab_size);
    lengths_.assign(options.batch, source_tokens_);
    if (model.info().vocab_size > 0) targets_ = RandomIds(size_t{options.batch} * kTargets, model.info().vocab_size);
    peak_.Sample();
  }

  // Nothing if the model does not take so many tokens; says so.
  std::optional<BenchRow> Run(const BenchWork& work) {
    BenchRow row = ModelRow(options_, model_, memory_);
    row.threads = config_.threads;
    row.encodes = true;
    row.work = work;
    row.batch = options_.batch;
    row.used_state_bytes = memory_.state_bytes;
    row.memory_bandwidth = memory_bandwidth_;
    if (row.decode() && !Fits(row, work.generated, model_.info().max_context)) return std::nullopt;
    Encode();
    Step(std::min(work.generated, kWarmUpSteps));
    peak_.Sample();
    for (uint32_t i = 0; i < options_.repetitions; ++i) {
      row.rates.push_back(static_cast<double>(row.all_tokens()) / Time(row));
      peak_.Sample();
    }
    if (options_.profile) {
      Prepare(row);
      Profile(
          session_.get(), [&] { return TimePrepared(row); }, &row);
    }
    row.peak_anonymous = peak_.bytes();
    return row;
  }

 private:
  static constexpr uint32_t kTargets = 64;  // ids that each sequence is fed again and again

  double Time(const BenchRow& row) {
    Prepare(row);
    return TimePrepared(row);
  }

  void Prepare(const BenchRow& row) {
    StopIfInterrupted();
    if (row.decode()) Encode();
  }

  double TimePrepared(const BenchRow& row) {
    const Clock::time_point start = Clock::now();
    if (row.decode()) {
      Step(row.work.generated);
    } else {
      Encode();
    }
    return SecondsSince(start);
  }

  void Encode() {
    tarn_error error;
    const float* logits = nullptr;
    switch (model_.info().task) {
      case TARN_TASK_CLASSIFICATION:
        Check(tarn_session_classify(session_.get(), sources_.data(), source_tokens_, lengths_.data(), &logits, &error), error);
        return;
      case TARN_TASK_MASKED_LM:
        for (uint32_t i = 0; i < options_.batch; ++i) {
          constexpr uint32_t kFirst = 0;
          const int32_t* source = sources_.data() + size_t{i} * source_tokens_;
          Check(tarn_session_fill(session_.get(), source, source_tokens_, &kFirst, 1, &logits, &error), error);
        }
        return;
      default:
        Check(tarn_session_encode(session_.get(), sources_.data(), source_tokens_, lengths_.data(), &error), error);
    }
  }

  void Step(uint32_t count) {
    tarn_error error;
    for (uint32_t i = 0; i < count; ++i) {
      StopIfInterrupted();
      const int32_t* tokens = targets_.data() + size_t{options_.batch} * (i % kTargets);
      Check(tarn_session_step(session_.get(), tokens, nullptr, &error), error);
    }
  }

  const BenchOptions& options_;
  const Model& model_;
  const double memory_bandwidth_;
  const uint32_t source_tokens_;
  tarn_session_config config_ = TARN_SESSION_CONFIG_INIT;
  tarn_memory memory_ = TARN_MEMORY_INIT;
  Session session_;
  std::vector<int32_t> sources_;  // [batch, source_tokens_]
  std::vector<size_t> lengths_;
  std::vector<int32_t> targets_;  // [kTargets, batch]
  PeakMemory peak_;
};

}  // namespace

bool RunSourceBench(const BenchOptions& options, const Model& model, uint32_t threads, const MemoryBandwidth& memory,
                    const std::function<bool(const BenchRow&)>& row) {
  for (const uint32_t source_tokens : options.prompts) {
    BenchRow wanted = {};
    wanted.model = model.info().name;
    wanted.encodes = true;
    wanted.work.prompt = source_tokens;
    if (!Fits(wanted, source_tokens, model.info().max_source_tokens)) continue;
    SourceBench bench(options, model, threads, source_tokens, memory);
    if (source_tokens > 0 && !row(*bench.Run({source_tokens, 0}))) return false;
    if (model.info().task != TARN_TASK_SEQ2SEQ) continue;
    for (const uint32_t generated : options.generated) {
      if (generated == 0) continue;
      const std::optional<BenchRow> done = bench.Run({0, generated});
      if (done && !row(*done)) return false;
    }
  }
  return true;
}

}  // namespace tarn_cli
