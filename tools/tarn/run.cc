// tarn run: a prompt in, text out as it comes, and a short table of what it took.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "tools/common/integer_option.h"
#include "tools/common/output_file.h"
#include "tools/common/signals.h"
#include "tools/tarn/allocation_counter.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/generation.h"
#include "tools/tarn/model.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;
using tarn::tools::OutputFile;

struct RunOptions {
  ModelOptions model;
  SessionOptions session;
  tarn_sampler_config sampler = TARN_SAMPLER_CONFIG_INIT;
  bool has_seed = false;
  std::string prompt;
  std::string prompt_file;
  std::string ids;  // the prompt as --tokens has it
  std::vector<int32_t> tokens;
  GenerationOptions generation;
  std::string json_stats;
};

std::vector<int32_t> PromptTokens(const RunOptions& options, const Model& model) {
  std::vector<int32_t> tokens = options.tokens;
  if (tokens.empty()) {
    if (model.info().tokenizer == TARN_TOKENIZER_NONE) {
      throw Failure(options.model.path + ": the model has no tokenizer: give the prompt as ids with --tokens 1,2,3");
    }
    tokens = model.Tokenize(options.prompt_file.empty() ? options.prompt : ReadFile(options.prompt_file));
  }
  if (tokens.empty()) {
    throw Failure("the prompt is empty, and the model has no begin token to start from: give one with -p, -f or --tokens");
  }
  return tokens;
}

std::vector<std::string> Inputs(const RunOptions& options) {
  std::vector<std::string> files = {options.model.path};
  if (!options.prompt_file.empty()) files.push_back(options.prompt_file);
  return files;
}

// "1,2,3"
std::vector<int32_t> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string id = text.substr(begin, end - begin);
    const std::optional<int32_t> value = tarn::tools::ParseInteger<int32_t>(id, 0, INT32_MAX);
    if (!value) throw UsageError(Format("run: --tokens: id %zu ", ids.size() + 1) + tarn::tools::NotInteger(id, 0, INT32_MAX));
    ids.push_back(*value);
    begin = end + 1;
  }
  return ids;
}

uint64_t RandomSeed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

template <typename T>
nlohmann::ordered_json OrNull(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json StatsJson(const RunOptions& options, const Model& model, const tarn_session_config& config,
                                 const GenerationStats& stats) {
  nlohmann::ordered_json json;
  json["model"] = model.info().name;
  json["isa"] = model.info().isa;
  json["dense"] = model.info().dense;
  json["threads"] = config.threads;
  json["seed"] = options.sampler.seed;
  json["prompt_tokens"] = options.generation.prompt.size();
  json["generated_tokens"] = stats.generated;
  json["prompt_seconds"] = stats.prompt_seconds;
  json["first_token_seconds"] = stats.first_token_seconds;
  json["generate_seconds"] = stats.generate_seconds;
  json["prompt_tokens_per_second"] = stats.PromptRate(options.generation.prompt.size());
  json["tokens_per_second"] = OrNull(stats.Rate());
  json["first_1000_median_us"] = OrNull(stats.times.FirstMedian());
  json["last_1000_median_us"] = OrNull(stats.times.LastMedian());
  json["allocations_after_creation"] = OrNull(stats.allocations);
  const char* missing = AllocationCounterMissing();
  json["allocation_counter"] = missing == nullptr ? "on" : missing;
  json["rss_anon_growth_pages"] = OrNull(stats.anonymous_growth_pages);
  json["packed_from_cache"] = model.info().packed_from_cache != 0;
  json["memory"] = MemoryJson(model.Requirements(config));
  return json;
}

void PrintTable(const RunOptions& options, const Model& model, const tarn_session_config& config, const GenerationStats& stats) {
  const size_t prompt_tokens = options.generation.prompt.size();
  Table table("lrlrl");
  table.Add({"prompt", std::to_string(prompt_tokens), "tokens", Format("%.1f", stats.PromptRate(prompt_tokens)), "tokens/s"});
  const std::optional<double> rate = stats.Rate();
  table.Add({"generation", std::to_string(stats.generated), "tokens", rate ? Format("%.1f", *rate) : "-", "tokens/s"});
  if (stats.generated > 0) table.Add({"first token", Format("%.2f", 1000 * stats.first_token_seconds), "ms"});
  std::fprintf(stderr, "\n%smemory\n%s", table.Text().c_str(), MemoryText(model.Requirements(config)).c_str());
}

int Run(RunOptions options) {
  const Model model(options.model);
  options.generation.prompt = PromptTokens(options, model);
  if (!options.has_seed) options.sampler.seed = RandomSeed();

  tarn::tools::CatchInterrupts();
  // Now: that it cannot be written should not be found out after an hour.
  std::optional<OutputFile> stats_file;
  if (!options.json_stats.empty()) stats_file.emplace(options.json_stats, Inputs(options));

  const tarn_session_config config = SessionConfig(options.session);
  options.generation.chunk = config.max_chunk;
  const Session session = CreateSession(model, config);
  tarn_error error;
  tarn_sampler* created = nullptr;
  Check(tarn_sampler_create(model.info().vocab_size, &options.sampler, &created, &error), error);
  const std::unique_ptr<tarn_sampler, void (*)(tarn_sampler*)> sampler(created, tarn_sampler_destroy);
  TokenWriter writer(model);

  std::fprintf(stderr, "seed %llu, %u thread%s, kernels %s, dense layers %s\n\n",
               static_cast<unsigned long long>(options.sampler.seed), config.threads, config.threads == 1 ? "" : "s",
               model.info().isa, model.info().dense);
  const GenerationStats stats = Generate(options.generation, session.get(), sampler.get(), &writer);
  writer.Finish();
  PrintTable(options, model, config, stats);
  if (stats_file) {
    const std::string text = JsonText(StatsJson(options, model, config, stats));
    stats_file->Write(text.data(), text.size());
    stats_file->Commit();
  }
  if (stats.error.status != TARN_OK) {
    throw Failure(Format("after %llu generated tokens: %s", static_cast<unsigned long long>(stats.generated), stats.error.message));
  }
  return tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : 0;
}

}  // namespace

void AddRun(CLI::App* app, Command* command) {
  CLI::App* run = app->add_subcommand("run", "Generate text after a prompt");
  const auto options = std::make_shared<RunOptions>();
  run->add_option("-m,--model", options->model.path, "Model file")->required()->type_name("FILE");
  CLI::Option* prompt = run->add_option("-p,--prompt", options->prompt, "Prompt");
  prompt->type_name("TEXT");
  CLI::Option* file = run->add_option("-f,--file", options->prompt_file, "Read the prompt from a file");
  file->type_name("FILE");
  CLI::Option* tokens = run->add_option("--tokens", options->ids, "Prompt as token ids: 1,2,3");
  tokens->type_name("IDS");
  AddInteger<int64_t>(run, "-n,--n-predict", &options->generation.max_tokens, "Tokens to generate; -1: until Ctrl-C (default: 128)",
                      -1);
  AddSessionOptions(run, &options->session);
  CLI::Option* seed =
      AddInteger<uint64_t>(run, "-s,--seed", &options->sampler.seed, "Seed of the draws (default: random, and printed)");
  run->add_option("--temp", options->sampler.temperature, "Temperature; 0: always the most probable token (default: 0.8)")
      ->type_name("T");
  AddInteger<uint32_t>(run, "--top-k", &options->sampler.top_k, "Keep the N most probable tokens; 0: all (default: 40)");
  run->add_option("--top-p", options->sampler.top_p, "Keep the fewest tokens that have probability P (default: 0.95)")
      ->type_name("P");
  run->add_option("--min-p", options->sampler.min_p, "Drop tokens below P times the most probable one (default: 0.05)")
      ->type_name("P");
  run->add_option("--repeat-penalty", options->sampler.repeat_penalty, "Penalty on recent tokens; 1: none (default: 1)")
      ->type_name("R");
  AddInteger<uint32_t>(run, "--repeat-last-n", &options->sampler.repeat_last_n, "How many tokens are recent (default: 64)");
  AddModelOptions(run, &options->model);
  run->add_option("--json-stats", options->json_stats, "Write times, allocations and memory to a JSON file")->type_name("FILE");
  run->add_flag("--test-allocate", options->generation.test_allocate)->group("");  // hidden: for tests of the counter
  run->footer(
      "Text goes to standard output, everything else to standard error.\n"
      "Examples:\n"
      "  tarn run -m model.tarn -p \"To be, or not\" -n 200\n"
      "  tarn run -m model.tarn -f prompt.txt -s 42 --temp 0        the same text every time\n"
      "  tarn run -m model.tarn -p A -n 100000 --json-stats stats.json > text.txt");
  run->callback([=] {
    if (!prompt->empty() + !file->empty() + !tokens->empty() > 1) {
      throw UsageError("run: more than one prompt: wanted one of -p, -f and --tokens");
    }
    if (!tokens->empty()) options->tokens = ParseIds(options->ids);
    options->has_seed = seed->count() > 0;
    *command = [=] { return Run(*options); };
  });
}

}  // namespace tarn_cli
