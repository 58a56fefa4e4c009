// tarn run: its options; run_causal.cc and run_seq2seq.cc do the work.
#include "tools/tarn/run.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/common/integer_option.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;

int Run(const RunOptions& options) {
  const Model model(options.model);
  RequireTask(model, "run", {TARN_TASK_CAUSAL_LM, TARN_TASK_SEQ2SEQ});
  options.by_task.Check("run", model.info().task);
  return model.info().task == TARN_TASK_SEQ2SEQ ? RunSeq2Seq(options, model) : RunCausal(options, model);
}

// How tokens are drawn.
void AddSamplerOptions(CLI::App* run, RunOptions* options) {
  tarn_sampler_config* chain = &options->sampler;
  const auto only = [=](const CLI::Option* option) { options->by_task.Only({TARN_TASK_CAUSAL_LM}, option); };
  only(AddInteger<uint64_t>(run, "-s,--seed", &chain->seed, "Seed of the draws (default: random, and printed)"));
  only(run->add_option("--temp", chain->temperature, "Temperature; 0: always the most probable token (default: 0.8)")
           ->type_name("T"));
  only(AddInteger<uint32_t>(run, "--top-k", &chain->top_k, "Keep the N most probable tokens; 0: all (default: 40)"));
  only(run->add_option("--top-p", chain->top_p, "Keep the fewest tokens that have probability P (default: 0.95)")->type_name("P"));
  only(run->add_option("--min-p", chain->min_p, "Drop tokens below P times the most probable one (default: 0.05)")->type_name("P"));
  only(
      run->add_option("--repeat-penalty", chain->repeat_penalty, "Penalty on recent tokens; 1: none (default: 1)")->type_name("R"));
  only(AddInteger<uint32_t>(run, "--repeat-last-n", &chain->repeat_last_n, "How many tokens are recent (default: 64)"));
}

}  // namespace

std::unique_ptr<tarn::tools::OutputFile> StatsFile(const RunOptions& options) {
  if (options.json_stats.empty()) return nullptr;
  std::vector<std::string> inputs = {options.model.path};
  if (!options.prompt_file.empty()) inputs.push_back(options.prompt_file);
  return std::make_unique<tarn::tools::OutputFile>(options.json_stats, inputs);
}

void AddRun(CLI::App* app, Command* command) {
  CLI::App* run = app->add_subcommand("run", "Generate text after a prompt, or from sources");
  const auto options = std::make_shared<RunOptions>();
  run->add_option("-m,--model", options->model.path, "Model file")->required()->type_name("FILE");
  const CLI::Option* prompt = run->add_option("-p,--prompt", options->prompt, "Prompt; the source of a seq2seq model");
  const CLI::Option* file = run->add_option("-f,--file", options->prompt_file, "Read the prompt from a file; sources: one a line");
  const CLI::Option* tokens = run->add_option("--tokens", options->ids, "Prompt or source as token ids: 1,2,3");
  run->get_option("--prompt")->type_name("TEXT");
  run->get_option("--file")->type_name("FILE");
  run->get_option("--tokens")->type_name("IDS");
  AddInteger<int64_t>(run, "-n,--n-predict", &options->max_tokens,
                      "Tokens to generate, of a seq2seq model at most; -1: until Ctrl-C (default: 128)", -1);
  AddSamplerOptions(run, options.get());
  AddTranslationOptions(run, &options->translation, &options->by_task);
  options->by_task.Only({TARN_TASK_SEQ2SEQ}, AddInteger<uint32_t>(run, "--batch", &options->translation.batch,
                                                                  "Sources at a time (default: 1)", 1, kMostSequences));
  AddSessionOptions(run, &options->session);
  AddModelOptions(run, &options->model);
  run->add_option("--json-stats", options->json_stats, "Write times, allocations and memory to a JSON file")->type_name("FILE");
  run->add_flag("--test-allocate", options->test_allocate)->group("");  // hidden: for tests of the counter
  run->footer(
      "Text goes to standard output, everything else to standard error.\n"
      "Examples:\n"
      "  tarn run -m model.tarn -p \"To be, or not\" -n 200\n"
      "  tarn run -m model.tarn -f prompt.txt -s 42 --temp 0        the same text every time\n"
      "  tarn run -m model.tarn -p A -n 100000 --json-stats stats.json > text.txt\n"
      "  tarn run -m translation.tarn -f sources.txt --beam 4 --batch 16 > outputs.txt");
  run->callback([=] {
    if (!prompt->empty() + !file->empty() + !tokens->empty() > 1) {
      throw UsageError("run: more than one prompt: wanted one of -p, -f and --tokens");
    }
    if (!tokens->empty()) options->tokens = IdsOption(options->ids, "run", "--tokens");
    options->has_seed = run->get_option("--seed")->count() > 0;
    *command = [=] { return Run(*options); };
  });
}

}  // namespace tarn_cli
