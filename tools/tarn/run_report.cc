// What a run took: a short table for people, a JSON file for programs.
#include <cstdio>

#include "tools/tarn/allocation_counter.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"
#include "tools/tarn/run.h"

namespace tarn_cli {
namespace {

const char* NameOf(StopReason reason) {
  static constexpr const char* kNames[] = {"n", "eos", "stop", "grammar", "max_context", "interrupted", "output_closed", "error"};
  return kNames[static_cast<size_t>(reason)];
}

// The same for people; "" where nobody asks.
std::string WhyItEnded(const RunReport& report) {
  switch (report.stats.stop) {
    case StopReason::kEos:
      return "the end token";
    case StopReason::kStop:
      return "a stop string";
    case StopReason::kGrammar:
      return "the text is complete as the grammar wants it";
    case StopReason::kMaxContext:
      return Format("the model's context of %llu tokens is full", static_cast<unsigned long long>(report.model.info().max_context));
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

// Adds the fields to `json`.
Json StatsJson(const RunReport& report, Json json) {
  const tarn_model_info& info = report.model.info();
  const GenerationStats& stats = report.stats;
  json.Add("model", info.name);
  json.Add("isa", info.isa);
  json.Add("dense", info.dense);
  json.Add("threads", report.config.threads);
  json.Add("seed", report.seed);
  json.Add("prompt_tokens", report.prompt_tokens);
  json.Add("prompt_length", report.prompt_length);
  json.Add("prompt_cached", stats.prompt_cached);
  json.Add("generated_tokens", stats.generated);
  json.Add("stop_reason", NameOf(stats.stop));
  json.Add("encode_seconds", report.encode_seconds);
  json.Add("prompt_seconds", stats.prompt_seconds);
  json.Add("first_token_seconds", stats.first_token_seconds);
  json.Add("generate_seconds", stats.generate_seconds);
  json.Add("prompt_tokens_per_second", stats.PromptRate(report.prompt_tokens));
  json.Add("tokens_per_second", stats.Rate());
  if (stats.speculation) {
    json.Add("model_runs", stats.speculation->runs);
    json.Add("drafted_tokens", stats.speculation->drafted);
    json.Add("accepted_tokens", stats.speculation->accepted);
    json.Add("speculation_bytes", stats.speculation_bytes);
  }
  json.Add("first_1000_median_us", stats.times.FirstMedian());
  json.Add("last_1000_median_us", stats.times.LastMedian());
  json.Add("allocations_after_creation", stats.allocations);
  const char* missing = AllocationCounterMissing();
  json.Add("allocation_counter", missing == nullptr ? "on" : missing);
  json.Add("rss_anon_growth_pages", stats.anonymous_growth_pages);
  json.Add("packed_from_cache", info.packed_from_cache != 0);
  json.Add("memory", MemoryJson(report.model.Requirements(report.config)));
  return json;
}

}  // namespace

std::string ReportText(const RunReport& report) {
  const GenerationStats& stats = report.stats;
  Table table("lrlrl");
  const std::string of = report.prompt_tokens == report.prompt_length
                             ? "tokens"
                             : Format("of %llu tokens", static_cast<unsigned long long>(report.prompt_length));
  table.Add({report.encode_seconds ? "source" : "prompt", std::to_string(report.prompt_tokens), of,
             Format("%.1f", stats.PromptRate(report.prompt_tokens)), "tokens/s"});
  if (stats.prompt_cached > 0) table.Add({"from cache", std::to_string(stats.prompt_cached), "tokens"});
  const std::optional<double> rate = stats.Rate();
  table.Add({"generation", std::to_string(stats.generated), "tokens", rate ? Format("%.1f", *rate) : "-", "tokens/s"});
  if (stats.generated > 0) table.Add({"first token", Format("%.2f", 1000 * stats.first_token_seconds), "ms"});
  if (stats.speculation) {
    const auto& drafts = *stats.speculation;
    table.Add(
        {"drafts", std::to_string(drafts.drafted), Format("tokens, %llu right", static_cast<unsigned long long>(drafts.accepted))});
  }
  const std::string why = WhyItEnded(report);
  return table.Text() + (why.empty() ? "" : "ended: " + why + "\n") + "memory\n" +
         MemoryText(report.model.Requirements(report.config));
}

bool WriteEndEvent(const RunReport& report) { return WriteStdout(JsonLine(StatsJson(report, {{"event", "end"}}))); }

void WriteReport(const RunReport& report, const RunOptions& options, StatsOutput* output) {
  if (options.jsonl) WriteEndEvent(report);
  if (!options.quiet) std::fprintf(stderr, "\n%s", ReportText(report).c_str());
  if (output->wanted()) output->Write(JsonText(StatsJson(report, Json::Object())));
}

}  // namespace tarn_cli
