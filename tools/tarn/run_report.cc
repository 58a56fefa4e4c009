// What a run took: a short table for people, a JSON file for programs.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/tarn/allocation_counter.h"
#include "tools/tarn/report.h"
#include "tools/tarn/run.h"

namespace tarn_cli {
namespace {

template <typename T>
nlohmann::ordered_json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

const char* NameOf(StopReason reason) {
  static constexpr const char* kNames[] = {"n", "eos", "max_context", "interrupted", "output_closed", "error"};
  return kNames[static_cast<size_t>(reason)];
}

// The same for people; "" where nobody asks.
std::string WhyItEnded(const RunReport& report) {
  switch (report.stats.stop) {
    case StopReason::kEos:
      return "the end token";
    case StopReason::kMaxContext:
      return Format("the model's context of %llu tokens is full", static_cast<unsigned long long>(report.model.info().max_tokens));
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kOutputClosed:
      return "the reader of the output has gone";
    case StopReason::kTokens:
    case StopReason::kError:  // which is an error line
      return "";
  }
  return "";
}

nlohmann::ordered_json StatsJson(const RunReport& report) {
  const tarn_model_info& info = report.model.info();
  const GenerationStats& stats = report.stats;
  nlohmann::ordered_json json;
  json["model"] = info.name;
  json["isa"] = info.isa;
  json["dense"] = info.dense;
  json["threads"] = report.config.threads;
  json["seed"] = OrNull(report.seed);
  json["prompt_tokens"] = report.prompt_tokens;
  json["prompt_length"] = report.prompt_length;
  json["generated_tokens"] = stats.generated;
  json["stop_reason"] = NameOf(stats.stop);
  json["encode_seconds"] = OrNull(report.encode_seconds);
  json["prompt_seconds"] = stats.prompt_seconds;
  json["first_token_seconds"] = stats.first_token_seconds;
  json["generate_seconds"] = stats.generate_seconds;
  json["prompt_tokens_per_second"] = stats.PromptRate(report.prompt_tokens);
  json["tokens_per_second"] = OrNull(stats.Rate());
  json["first_1000_median_us"] = OrNull(stats.times.FirstMedian());
  json["last_1000_median_us"] = OrNull(stats.times.LastMedian());
  json["allocations_after_creation"] = OrNull(stats.allocations);
  const char* missing = AllocationCounterMissing();
  json["allocation_counter"] = missing == nullptr ? "on" : missing;
  json["rss_anon_growth_pages"] = OrNull(stats.anonymous_growth_pages);
  json["packed_from_cache"] = info.packed_from_cache != 0;
  json["memory"] = MemoryJson(report.model.Requirements(report.config));
  return json;
}

void PrintTable(const RunReport& report) {
  const GenerationStats& stats = report.stats;
  Table table("lrlrl");
  const std::string of = report.prompt_tokens == report.prompt_length
                             ? "tokens"
                             : Format("of %llu tokens", static_cast<unsigned long long>(report.prompt_length));
  table.Add({report.encode_seconds ? "source" : "prompt", std::to_string(report.prompt_tokens), of,
             Format("%.1f", stats.PromptRate(report.prompt_tokens)), "tokens/s"});
  const std::optional<double> rate = stats.Rate();
  table.Add({"generation", std::to_string(stats.generated), "tokens", rate ? Format("%.1f", *rate) : "-", "tokens/s"});
  if (stats.generated > 0) table.Add({"first token", Format("%.2f", 1000 * stats.first_token_seconds), "ms"});
  const std::string why = WhyItEnded(report);
  std::fprintf(stderr, "\n%s%smemory\n%s", table.Text().c_str(), why.empty() ? "" : ("ended: " + why + "\n").c_str(),
               MemoryText(report.model.Requirements(report.config)).c_str());
}

}  // namespace

void WriteReport(const RunReport& report, bool quiet, StatsOutput* output) {
  if (!quiet) PrintTable(report);
  if (output->wanted()) output->Write(JsonText(StatsJson(report)));
}

}  // namespace tarn_cli
