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
  json["generated_tokens"] = stats.generated;
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
  table.Add({report.encode_seconds ? "source" : "prompt", std::to_string(report.prompt_tokens), "tokens",
             Format("%.1f", stats.PromptRate(report.prompt_tokens)), "tokens/s"});
  const std::optional<double> rate = stats.Rate();
  table.Add({"generation", std::to_string(stats.generated), "tokens", rate ? Format("%.1f", *rate) : "-", "tokens/s"});
  if (stats.generated > 0) table.Add({"first token", Format("%.2f", 1000 * stats.first_token_seconds), "ms"});
  std::fprintf(stderr, "\n%smemory\n%s", table.Text().c_str(), MemoryText(report.model.Requirements(report.config)).c_str());
}

}  // namespace

void WriteReport(const RunReport& report, tarn::tools::OutputFile* file) {
  PrintTable(report);
  if (file == nullptr) return;
  const std::string text = JsonText(StatsJson(report));
  file->Write(text.data(), text.size());
  file->Commit();
}

}  // namespace tarn_cli
