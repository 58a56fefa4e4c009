// tarn run: its options; run_causal.cc and run_seq2seq.cc do the work.
#include "tools/tarn/run.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/printable.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/escapes.h"
#include "tools/tarn/files.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;

constexpr uint32_t kMostDrafts = 63;

int Run(const RunOptions& options) {
  const Model model(options.model);
  RequireTask(model, "run", {TARN_TASK_CAUSAL_LM, TARN_TASK_SEQ2SEQ});
  options.by_task.Check("run", model.info().task);
  options.sampling.CheckTokens(model);
  if (options.interactive) return RunInteractive(options, model);
  return model.info().task == TARN_TASK_SEQ2SEQ ? RunSeq2Seq(options, model) : RunCausal(options, model);
}

// The path of a file that need not exist; "" where the system cannot tell, which opening it will say.
std::string ResolvedPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? "" : std::filesystem::weakly_canonical(absolute, error).string();
}

// One kind of output has standard output for itself.
void CheckOutputs(const RunOptions& options) {
  const bool stats = options.json_stats == "-";
  if (options.sampling.log_probabilities && stats) {
    throw UsageError("run: --logprobs and --json-stats - both write to standard output, expected a file for --json-stats");
  }
  if (options.interactive && (!options.json_stats.empty() || options.sampling.log_probabilities)) {
    throw UsageError(std::string("run: -i and ") + (stats || !options.json_stats.empty() ? "--json-stats" : "--logprobs") +
                     " do not go together, expected one of them (-i has --jsonl and /stats)");
  }
  const std::string stats_path = stats || options.json_stats.empty() ? "" : ResolvedPath(options.json_stats);
  if (!stats_path.empty() && !options.save_state.empty() && stats_path == ResolvedPath(options.save_state)) {
    throw UsageError("run: --json-stats and --save-state both write " + options.save_state + ", expected two files");
  }
  const SamplingOptions& sampling = options.sampling;
  if (sampling.print_grammar && (!options.save_state.empty() || !options.json_stats.empty())) {
    throw UsageError("run: --print-grammar writes the rules alone, expected no --save-state and no --json-stats with it");
  }
  if (options.interactive && (!sampling.grammar.empty() || !sampling.json_schema.empty() || sampling.print_grammar)) {
    throw UsageError("run: -i and --grammar, --json-schema or --print-grammar do not go together, expected one of them");
  }
  const bool rules_are_read = sampling.grammar == "-" || sampling.json_schema == "-";
  if (rules_are_read && !sampling.print_grammar && options.input.reads_stdin()) {
    throw UsageError(std::string("run: ") + (sampling.grammar == "-" ? "--grammar" : "--json-schema") +
                     " - and the prompt both read standard input, expected a file for one of them");
  }
  if (options.jsonl && (stats || options.sampling.log_probabilities)) {
    throw UsageError(std::string("run: --jsonl and ") + (stats ? "--json-stats -" : "--logprobs") +
                     " both write to standard output, expected one of them");
  }
}

void CheckStates(const RunOptions& options) {
  if (!options.load_state.empty() && options.turns.system) {
    throw UsageError("run: --load-state and --system do not go together, expected one of them (the state has its beginning)");
  }
  if (!options.compact_state || options.interactive || !options.save_state.empty()) return;
  throw UsageError("run: --compact-state saves nothing, expected --save-state FILE, or -i with its /save");
}

// A prompt of --chat is what a user says.
void CheckChat(RunOptions* options) {
  if (!options->turns.chat) return;
  if (!options->input.tokens().empty()) {
    throw UsageError("run: --tokens and --chat do not go together, expected one of them (--chat formats a text)");
  }
  if (options->input.is_nothing() && !options->interactive) throw UsageError("run: --chat has no prompt, expected -p, -f or -i");
  options->echo = false;
}

// States in files, of causal models.
void AddStates(App* run, RunOptions* options) {
  Option* load =
      run->add_option("--load-state", options->load_state, "Go on from the state in FILE: the prompt comes after its text")
          ->input_file();
  options->by_task.Only({TARN_TASK_CAUSAL_LM}, load);
  options->by_task.Only({TARN_TASK_CAUSAL_LM},
                        run->add_option("--save-state", options->save_state, "Write the state at the end to FILE")->output_file());
  options->by_task.Only(
      {TARN_TASK_CAUSAL_LM},
      run->add_flag("--compact-state", options->compact_state,
                    "Round the states of --save-state and /save to int8: about a third of the bytes, slightly other logits"));
  Option* cache =
      run->add_option("--prompt-cache", options->prompt_cache,
                      "Save states of each prompt in the directory DIR; a prompt with the same beginning starts from there")
          ->directory()
          ->excludes(load);
  options->by_task.Only({TARN_TASK_CAUSAL_LM}, cache);
  options->by_task.Only(
      {TARN_TASK_CAUSAL_LM},
      AddInteger<uint64_t>(run, "--prompt-cache-bytes", &options->prompt_cache_bytes,
                           "If the states in DIR take more than N bytes, remove the least recently used ones (default: 2^30)", 1)
          ->needs(cache));
}

// Several tokens of one run.
void AddSpeculation(App* run, RunOptions* options) {
  options->by_task.Only({TARN_TASK_CAUSAL_LM},
                        AddInteger<uint32_t>(run, "--speculate", &options->speculation.drafts,
                                             "Guess up to N tokens at a time from the text so far and check them in one run: the "
                                             "same text, sooner where it repeats itself (default: 0, none; with --draft 8)",
                                             0, kMostDrafts));
  options->by_task.Only({TARN_TASK_CAUSAL_LM}, run->add_option("--draft", options->speculation.draft_model,
                                                               "A smaller model with the same tokenizer, which also guesses tokens")
                                                   ->input_file());
}

void CheckSpeculation(bool has_number, RunOptions* options) {
  SpeculationOptions& speculation = options->speculation;
  constexpr uint32_t kDefaultDrafts = 8;
  if (!speculation.draft_model.empty() && !has_number) speculation.drafts = kDefaultDrafts;
  if (!speculation.draft_model.empty() && speculation.drafts == 0) {
    throw UsageError("run: --speculate 0 guesses nothing, expected at least 1 with --draft");
  }
  if (speculation.drafts > 0 && options->session.chunk == 1) {
    throw UsageError("run: --chunk is 1, expected at least 2 with --speculate or --draft");
  }
  if (options->interactive && speculation.drafts > 0) {
    throw UsageError("run: -i and --speculate or --draft do not go together, expected one of them");
  }
}

}  // namespace

std::vector<std::string> RunInputs(const RunOptions& options) {
  std::vector<std::string> inputs = {options.model.path};
  if (options.input.is_file()) inputs.push_back(options.input.file());
  for (const std::string& path : {options.sampling.grammar, options.sampling.json_schema, options.speculation.draft_model}) {
    if (!path.empty()) inputs.push_back(path);
  }
  return inputs;
}

StatsOutput::StatsOutput(const RunOptions& options) : to_stdout_(options.json_stats == "-") {
  if (options.json_stats.empty() || to_stdout_) return;
  std::vector<std::string> inputs = RunInputs(options);
  if (!options.load_state.empty()) inputs.push_back(options.load_state);
  file_ = std::make_unique<tarn::tools::OutputFile>(options.json_stats, inputs);
}

void StatsOutput::Write(const std::string& text) {
  if (to_stdout_) WriteStdout(text);
  if (file_ == nullptr) return;
  file_->Write(text.data(), text.size());
  file_->Commit();
}

void AddRun(App* app, Command* command) {
  App* run = app->add_subcommand("run", "Generate text after a prompt (causal_lm) or from sources (seq2seq)");
  const auto options = std::make_shared<RunOptions>();
  RequireModelPath(run, &options->model.path);
  options->input.AddOptions(run, "Prompt, or the source of a seq2seq model",
                            "Read the prompt, or sources, one per line, from a file", "Prompt or source");
  options->by_task.Only(
      {TARN_TASK_CAUSAL_LM},
      run->add_flag("--raw", options->raw,
                    "Keep the newline at the end of a prompt from a file or standard input (default: remove one)"));
  AddPlain(run, &options->turns.plain);
  AddInteger<int64_t>(run, "-n,--n-predict", &options->max_output_tokens,
                      "Generate at most N tokens; -1: no limit, causal_lm only (default: 128)", -1);
  options->by_task.Only({TARN_TASK_CAUSAL_LM}, run->add_flag("-i,--interactive", options->interactive,
                                                             "Read turns from the terminal or from lines of standard input, and "
                                                             "answer each; /help lists the commands"));
  Option* chat = run->add_flag("--chat", options->turns.chat,
                               "Format the prompt, or every turn of -i, with the model's chat template, and write the answer "
                               "alone; special tokens inside a turn are read as text");
  options->by_task.Only({TARN_TASK_CAUSAL_LM}, chat);
  run->add_option("--system", options->turns.system,
                  "Instructions to the model before the conversation, in place of the template's default")
      ->type_name("TEXT")
      ->needs(chat);
  options->by_task.Only({TARN_TASK_CAUSAL_LM},
                        run->add_option("--stop", options->stop_strings,
                                        "End the output before the first TEXT in it, which may span several tokens; repeatable")
                            ->type_name("TEXT")
                            ->allow_extra_args(false));
  run->add_flag("-e,--escape", options->escapes, "Read escape sequences, such as \\n and \\u00e9, in -p, --stop and --system");
  options->sampling.AddTo(run, &options->by_task);
  AddTranslationOptions(run, &options->translation, &options->by_task);
  options->by_task.Only({TARN_TASK_SEQ2SEQ}, AddInteger<uint32_t>(run, "--batch", &options->translation.batch,
                                                                  "Sources per batch (default: 1)", 1, kMostSequences));
  AddSessionOptions(run, &options->session);
  AddModelOptions(run, &options->model);
  run->add_flag("-q,--quiet", options->quiet,
                "Write no statistics and no progress to standard error; with -i, the prompt and messages remain");
  run->add_flag_callback(
      "--no-echo", [=] { options->echo = false; }, "Do not repeat the prompt in the output");
  options->by_task.Only({TARN_TASK_CAUSAL_LM},
                        run->add_flag("--jsonl", options->jsonl, "Write a line of JSON for each event instead of the text"));
  AddStates(run, options.get());
  AddSpeculation(run, options.get());
  run->add_option("--json-stats", options->json_stats,
                  "Write times, memory and the reason of the end as JSON; -: to standard output, instead of the text")
      ->input_file();
  run->add_flag("--test-allocate", options->test_allocate)->group("");  // hidden: for tests of the counter
  run->footer(
      "Text goes to standard output, everything else to standard error.\n"
      "The text ends after -n tokens, at the model's end token, at a stop string, when a bounded model is full, or at Ctrl-C.\n"
      "Examples (shakespeare-*: examples/models; dates: tarn-convert examples/train/checkpoints/dates-abc -o dates.tarn):\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -p \"To be, or not\" -n 200\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -f README.md -s 42 --temp 0       # the same text every time\n"
      "  head -c 500 README.md | tarn run shakespeare-rfa-gate-int8.tarn -q --no-echo\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -p A -n 2000 --json-stats stats.json > text.txt\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -i --stop \"\\n\\n\" -e -n 200                  # answers each line that is "
      "typed\n"
      "  printf '3 March 1998\\nMay 7, 2021\\n' | tarn run dates.tarn --beam 4 --batch 16");
  run->callback([=] {
    options->input.Choose("run", options->interactive);
    CheckOutputs(*options);
    CheckStates(*options);
    CheckChat(options.get());
    CheckSpeculation(run->count("--speculate") > 0, options.get());
    if (options->escapes && run->count("--prompt") + run->count("--stop") + run->count("--system") == 0) {
      throw UsageError("run: -e is there without -p, --stop and --system, expected one of them, whose escape sequences it reads");
    }
    if (options->escapes) {
      options->input.UnescapeText();
      for (std::string& stop : options->stop_strings) stop = Unescape(stop, "--stop");
      if (options->turns.system) options->turns.system = Unescape(*options->turns.system, "--system");
    } else if (!options->quiet) {
      for (const std::string& stop : options->stop_strings) {
        if (stop.find('\\') == std::string::npos) continue;
        const std::string line = tarn::tools::ErrorLine("--stop '" + stop + "'");
        std::fprintf(stderr, "tarn: warning: %s: without -e, a backslash stands for itself\n", line.c_str());
      }
    }
    for (const char* option : {"--grammar-states", "--grammar-work"}) {
      if (run->count(option) > 0 && options->sampling.grammar.empty() && options->sampling.json_schema.empty()) {
        throw UsageError(std::string("run: ") + option +
                         " is there without --grammar and --json-schema, expected one of them with it");
      }
    }
    options->model.quiet = options->quiet;
    options->sampling.has_seed = run->count("--seed") > 0;
    *command = [=] { return Run(*options); };
  });
}

}  // namespace tarn_cli
