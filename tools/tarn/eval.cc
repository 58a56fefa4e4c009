// tarn eval: its options; the files eval_*.cc have what they measure.
#include "tools/tarn/eval.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "tools/common/integer_option.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/files.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;

int Eval(const EvalOptions& options) {
  const Model model(options.model);
  options.by_task.Check("eval", model.info().task);
  switch (model.info().task) {
    case TARN_TASK_CAUSAL_LM:
      return EvalCausal(options, model);
    case TARN_TASK_SEQ2SEQ:
      return EvalSeq2Seq(options, model);
    case TARN_TASK_CLASSIFICATION:
      return EvalClassification(options, model);
    case TARN_TASK_MASKED_LM:
      return EvalMasked(options, model);
  }
  throw Failure("eval: " + model.path() + ": a task that this version does not know");
}

}  // namespace

int WriteResult(const EvalOptions& options, const Model& model, std::vector<EvalNumber> numbers, const char* unit, uint64_t count,
                double seconds) {
  if (options.json) {
    Json json = Json::Object();
    json.Add("model", model.info().name);
    for (EvalNumber& number : numbers) json.Add(number.key, std::move(number.value));
    json.Add("seconds", seconds);
    json.Add("isa", model.info().isa);
    json.Add("dense", model.info().dense);
    WriteStdout(JsonText(json));
    return 0;
  }
  Table table("lr");
  for (const EvalNumber& number : numbers) {
    if (*number.label != '\0') table.Add({number.label, number.text});
  }
  table.Add({std::string(unit) + "/s", Format("%.1f", static_cast<double>(count) / seconds)});
  WriteStdout(table.Text());
  return 0;
}

void AddEval(CLI::App* app, Command* command) {
  CLI::App* eval = app->add_subcommand("eval", "Measure the quality of a model: loss, accuracy or exact matches");
  const auto options = std::make_shared<EvalOptions>();
  TaskOptions* by_task = &options->by_task;
  const std::initializer_list<tarn_task> reads_text = {TARN_TASK_CAUSAL_LM, TARN_TASK_MASKED_LM};
  AddModelPath(eval, &options->model.path)->required();
  eval->add_option(
          "-f,--file", options->file,
          "Text; classification: lines LABEL<tab>TEXT; seq2seq: lines SOURCE<tab>TARGET; without tokenizer a .npy file of int32 "
          "ids, or ids in lines; -: standard input")
      ->required()
      ->type_name("FILE");
  by_task->Only(reads_text, AddInteger<uint64_t>(eval, "--begin", &options->range.begin, "Skip the first N tokens (default: 0)"));
  by_task->Only(reads_text, AddInteger<uint64_t>(eval, "--tokens", &options->range.tokens, "Read at most N tokens (default: all)"));
  // The first token of a block is not scored: blocks of one would score nothing.
  by_task->Only(reads_text, AddInteger<uint64_t>(eval, "--block", &options->range.block,
                                                 "Reset the model before every N tokens (default: never, for masked_lm 512)", 2));
  by_task->Only(
      {TARN_TASK_CAUSAL_LM},
      eval->add_option("--logits", options->logits, "Write the logits after every token to a .npy file: float32 [tokens, vocab]")
          ->type_name("FILE"));
  by_task->Only({TARN_TASK_MASKED_LM},
                AddInteger<uint64_t>(eval, "-s,--seed", &options->seed, "Seed of the choice of hidden tokens (default: 42)"));
  by_task->Only({TARN_TASK_MASKED_LM}, AddInteger<int32_t>(eval, "--mask", &options->mask,
                                                           "Token id that hides a token (default: the model's mask token)", 0));
  by_task->Only({TARN_TASK_SEQ2SEQ}, AddInteger<uint32_t>(eval, "-n,--n-predict", &options->translation.max_output_tokens,
                                                          "Longest output, in tokens (default: 128)", 1));
  AddTranslationOptions(eval, &options->translation, by_task);
  by_task->Only(
      {TARN_TASK_SEQ2SEQ, TARN_TASK_CLASSIFICATION},
      AddInteger<uint32_t>(eval, "--batch", &options->translation.batch, "Lines per batch (default: 1)", 1, kMostSequences));
  eval->add_flag("--json", options->json, "Print one JSON object");
  AddSessionOptions(eval, &options->session);
  AddModelOptions(eval, &options->model);
  eval->footer(
      "causal_lm: nats per token; the first token of the text, or of each block, is not scored. masked_lm: nats per\n"
      "hidden token; 15 % of each block are hidden. classification: accuracy. seq2seq: share of outputs that equal the\n"
      "target.\n"
      "Examples (listops: tarn-convert examples/train/checkpoints/listops-abc -o listops.tarn; others as in tarn help run):\n"
      "  tarn eval shakespeare-abc-mlp-int8.tarn -f README.md\n"
      "  tarn eval shakespeare-abc-mlp-int8.tarn -f README.md --begin 1000 --block 256 --json\n"
      "  printf '9\\tX29N47]0]\\n' | tarn eval listops.tarn -f -\n"
      "  printf '3 March 1998\\t1998-03-03\\n' | tarn eval dates.tarn -f - --beam 4");
  eval->callback([=] { *command = [=] { return Eval(*options); }; });
}

}  // namespace tarn_cli
