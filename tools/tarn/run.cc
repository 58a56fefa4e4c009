// tarn run: its options; run_causal.cc and run_seq2seq.cc do the work.
#include "tools/tarn/run.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/common/integer_option.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"

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

StatsOutput::StatsOutput(const RunOptions& options) : to_stdout_(options.json_stats == "-") {
  if (options.json_stats.empty() || to_stdout_) return;
  std::vector<std::string> inputs = {options.model.path};
  if (options.input.is_file()) inputs.push_back(options.input.file());
  file_ = std::make_unique<tarn::tools::OutputFile>(options.json_stats, inputs);
}

void StatsOutput::Write(const std::string& text) {
  if (to_stdout_) WriteStdout(text);
  if (file_ == nullptr) return;
  file_->Write(text.data(), text.size());
  file_->Commit();
}

void AddRun(CLI::App* app, Command* command) {
  CLI::App* run = app->add_subcommand("run", "Generate text after a prompt, or from sources");
  const auto options = std::make_shared<RunOptions>();
  AddModelPath(run, &options->model.path)->required();
  options->input.AddOptions(run, "Prompt; the source of a seq2seq model", "Read the prompt from a file; sources: one a line",
                            "Prompt or source");
  options->by_task.Only(
      {TARN_TASK_CAUSAL_LM},
      run->add_flag("--raw", options->raw, "Keep the newline at the end of a prompt that is read (default: leave one out)"));
  AddInteger<int64_t>(run, "-n,--n-predict", &options->max_tokens,
                      "Tokens to generate, of a seq2seq model at most; -1: until Ctrl-C (default: 128)", -1);
  AddSamplerOptions(run, options.get());
  AddTranslationOptions(run, &options->translation, &options->by_task);
  options->by_task.Only({TARN_TASK_SEQ2SEQ}, AddInteger<uint32_t>(run, "--batch", &options->translation.batch,
                                                                  "Sources at a time (default: 1)", 1, kMostSequences));
  AddSessionOptions(run, &options->session);
  AddModelOptions(run, &options->model);
  run->add_flag("-q,--quiet", options->quiet, "No statistics and no progress: nothing on standard error but errors");
  run->add_flag_callback(
      "--no-echo", [=] { options->echo = false; }, "Do not write the prompt");
  run->add_option("--json-stats", options->json_stats,
                  "Write times, allocations, memory and why it ended to a JSON file; -: standard output, instead of the text")
      ->type_name("FILE");
  run->add_flag("--test-allocate", options->test_allocate)->group("");  // hidden: for tests of the counter
  run->footer(
      "Text goes to standard output, everything else to standard error.\n"
      "It ends after -n tokens, at the model's end token, where a bounded model is full, or at Ctrl-C; the statistics say which.\n"
      "Examples (shakespeare-*: examples/models; dates: tarn-convert examples/train/checkpoints/dates-abc -o dates.tarn):\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -p \"To be, or not\" -n 200\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -f README.md -s 42 --temp 0       # the same text every time\n"
      "  head -c 500 README.md | tarn run shakespeare-abc-mlp-int8.tarn -q --no-echo\n"
      "  tarn run shakespeare-abc-mlp-int8.tarn -p A -n 2000 --json-stats stats.json > text.txt\n"
      "  printf '3 March 1998\\nMay 7, 2021\\n' | tarn run dates.tarn --beam 4 --batch 16");
  run->callback([=] {
    options->input.Choose("run");
    options->has_seed = run->get_option("--seed")->count() > 0;
    *command = [=] { return Run(*options); };
  });
}

}  // namespace tarn_cli
