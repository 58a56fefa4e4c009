// Going back from a run in steps, by family of the op with states: what KeepSteps takes, and what it would take to copy the states
// after every step, or to feed the accepted tokens once more. Layers as those of lm-big, int8.
#include <benchmark/benchmark.h>

#include <ctime>
#include <string>
#include <vector>

#include "core/bump.h"
#include "runtime/session/session.h"
#include "tests/support/models.h"

namespace tarn {
namespace {

constexpr uint32_t kSteps = 8, kKept = 4;

struct Family {
  const char* name;
  const char* attention;
};
constexpr Family kFamilies[] = {
    {"linear_state", R"({"system": "rfa", "feature_map": "gaussian", "num_features": 64, "gate": "forget"})"},
    {"slot_memory", R"({"system": "abc_mlp", "num_slots": 64})"},
    {"cache", R"({"system": "sliding_window", "window": 512})"},
};

std::string Config(const char* attention) {
  return std::string(R"({"task": "causal_lm", "vocab_size": 256, "hidden_size": 1024, "num_layers": 4, "num_heads": 8,
    "intermediate_size": 4096, "hidden_act": "relu", "norm": "layernorm", "norm_eps": 1e-5, "attention_bias": true,
    "tokenizer": "bytes", "position_embedding": "sinusoidal", "attention": )") +
         attention + "}";
}

enum class Way { kRun, kKeepSteps, kCopyEveryStep, kFeedAgain };

// Of the processor: a run has one thread.
double Seconds(std::clock_t start) { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }

void Measure(benchmark::State& state, const Family& family, Way way) {
  const std::vector<uint8_t> file = test::MakeModel(Config(family.attention), convert::Precision::kInt8);
  Result<LoadedModel> model =
      LoadedModel::Open(FileMap(), {file.data(), file.size()}, {Verify::kOnce, nullptr, false, DefaultAllocator()});
  if (!model.ok() || !model.value().Pack().ok()) return state.SkipWithError("the model cannot be opened");
  Session* const session = Session::Create(model.value(), {1, 64, kSteps, 1}, {}).value();
  StepLog log;
  Bump count;
  session->TakeStepLog(&count, kSteps, &log);
  const Block block = std::move(Block::Allocate(DefaultAllocator(), count.used(), "bench").value());
  Bump bump(block.bytes());
  session->TakeStepLog(&bump, kSteps, &log);
  std::vector<uint8_t> copies(session->StateBytes() * kSteps);
  std::vector<int32_t> tokens(600, 7);
  bool ok = session->Prefill(tokens.data(), tokens.size()).ok();
  for (auto _ : state) {
    std::clock_t start = std::clock();
    ok = ok && session->Steps(tokens.data(), kSteps, &log).ok();
    if (way == Way::kRun) state.SetIterationTime(Seconds(start));
    start = std::clock();
    session->KeepSteps(kKept, &log);
    ok = ok && session->MakeWhole().ok();
    if (way == Way::kKeepSteps) state.SetIterationTime(Seconds(start));
    start = std::clock();
    if (way == Way::kCopyEveryStep) {
      for (size_t i = 0; i < kSteps; ++i) session->CopyState(copies.data() + i * session->StateBytes());
    }
    if (way == Way::kFeedAgain) {
      session->CopyState(copies.data());
      session->SetState(copies.data());
      ok = ok && session->Prefill(tokens.data(), kKept).ok();
    }
    if (way == Way::kCopyEveryStep || way == Way::kFeedAgain) state.SetIterationTime(Seconds(start));
  }
  if (!ok) state.SkipWithError("a run failed");
  state.counters["state_bytes"] = static_cast<double>(session->StateBytes());
  state.counters["log_bytes"] = static_cast<double>(count.used());
  Session::Destroy(session);
}

[[maybe_unused]] const int kRegistered = [] {
  constexpr std::pair<Way, const char*> kWays[] = {{Way::kRun, "run"},
                                                   {Way::kKeepSteps, "keep_steps"},
                                                   {Way::kCopyEveryStep, "copy_every_step"},
                                                   {Way::kFeedAgain, "feed_again"}};
  for (const Family& family : kFamilies) {
    for (const auto& [way, name] : kWays) {
      benchmark::RegisterBenchmark((std::string("steps_") + name + "/" + family.name).c_str(),
                                   [&family, w = way](benchmark::State& state) { Measure(state, family, w); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace tarn
