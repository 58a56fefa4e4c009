// tarn eval: its options; the files eval_*.cc have what they measure.
#include "tools/tarn/eval.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/common/printable.h"
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
      return options.choices ? EvalChoices(options, model) : EvalCausal(options, model);
    case TARN_TASK_SEQ2SEQ:
      return EvalSeq2Seq(options, model);
    case TARN_TASK_CLASSIFICATION:
      return EvalClassification(options, model);
    case TARN_TASK_MASKED_LM:
      return EvalMasked(options, model);
  }
  throw Failure("eval: " + model.path() + ": a task that this version does not know");
}

void AddNumbers(const EvalRow& row, Json* json) {
  for (const EvalNumber& number : row.numbers) json->Add(number.key, number.value);
  json->Add("seconds", row.seconds);
}

Json ResultJson(const Model& model, const std::vector<EvalRow>& rows) {
  Json json = Json::Object();
  json.Add("model", model.info().name);
  AddNumbers(rows.back(), &json);
  json.Add("isa", model.info().isa);
  json.Add("dense", model.info().dense);
  if (rows.size() == 1) return json;
  Json files = Json::Array();
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    Json file = Json::Object();
    file.Add("file", rows[i].name);
    AddNumbers(rows[i], &file);
    files.Add(std::move(file));
  }
  json.Add("files", std::move(files));
  return json;
}

std::string Rate(const EvalRow& row) { return Format("%.1f", static_cast<double>(row.count) / row.seconds); }

// A line for every number of one row, or a line for every row.
std::string ResultText(const std::vector<EvalRow>& rows, const char* unit) {
  const std::string rate = std::string(unit) + "/s";
  const std::vector<EvalNumber>& numbers = rows.back().numbers;
  if (rows.size() == 1) {
    Table table("lr");
    for (const EvalNumber& number : numbers) {
      if (*number.label != '\0') table.Add({number.label, number.text});
    }
    table.Add({rate, Rate(rows.back())});
    return table.Text();
  }
  std::vector<std::string> heads = {"file"};
  for (const EvalNumber& number : numbers) {
    if (*number.label != '\0') heads.push_back(number.label);
  }
  heads.push_back(rate);
  Table table("l" + std::string(heads.size() - 1, 'r'));
  table.Add(heads);
  for (const EvalRow& row : rows) {
    std::vector<std::string> cells = {row.name};
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (*numbers[i].label != '\0') cells.push_back(row.numbers[i].text);
    }
    cells.push_back(Rate(row));
    table.Add(std::move(cells));
  }
  return table.Text();
}

// Which files are read, and that the options fit them. `of_texts` are those that questions do not take.
void ChooseFiles(const std::vector<std::string>& questions, const std::vector<const Option*>& of_texts, EvalOptions* options) {
  const tarn::tools::EvaluationRange& range = options->range;
  if (options->files.empty() && questions.empty() && InputIsFed()) options->files = {"-"};
  if (options->files.empty() && questions.empty())
    throw UsageError("eval: --file is missing, expected --file FILE or --choices FILE");
  if (!options->files.empty() && !questions.empty())
    throw UsageError("eval: --file and --choices are both there, expected one of them");
  for (const Option* option : of_texts) {
    if (!questions.empty() && !option->empty())
      throw UsageError("eval: " + option->get_name() + " is for texts, not for --choices");
  }
  if (range.stride > range.block) {
    throw UsageError("eval: --stride: is '" + std::to_string(range.stride) + "', expected at most " + std::to_string(range.block) +
                     ", the tokens of a block");
  }
  options->choices = !questions.empty();
  if (options->choices) options->files = questions;
  if (std::count(options->files.begin(), options->files.end(), "-") > 1) {
    throw UsageError("eval: - is there more than once, but standard input can be read once");
  }
  if (!options->logits.empty() && options->files.size() > 1) throw UsageError("eval: --logits is the output of one --file");
}

// The options of texts, which are read as a row of tokens.
std::vector<const Option*> AddTextOptions(App* eval, EvalOptions* options) {
  TaskOptions* by_task = &options->by_task;
  std::vector<const Option*> added;
  const auto add = [&](std::initializer_list<tarn_task> tasks, Option* option) {
    by_task->Only(tasks, option);
    added.push_back(option);
    return option;
  };
  const std::initializer_list<tarn_task> reads_text = {TARN_TASK_CAUSAL_LM, TARN_TASK_MASKED_LM};
  add(reads_text, AddInteger<uint64_t>(eval, "--begin", &options->range.begin, "Skip the first N tokens (default: 0)"));
  add(reads_text, AddInteger<uint64_t>(eval, "--tokens", &options->range.tokens, "Read at most N tokens (default: all)"));
  // The first token of a block is not scored: blocks of one would score nothing.
  Option* block =
      add(reads_text, AddInteger<uint64_t>(eval, "--block", &options->range.block,
                                           "Reset the model before every N tokens (default: never, for masked_lm 512)", 2));
  add({TARN_TASK_CAUSAL_LM},
      AddInteger<uint64_t>(eval, "--stride", &options->range.stride,
                           "Begin a block every N tokens, so that blocks overlap; each token is scored once, in the first block "
                           "that has it (default: the tokens of a block)",
                           1))
      ->needs(block);
  add({TARN_TASK_CAUSAL_LM}, eval->add_option("--against", options->against,
                                              "Compare with this model: its loss, the KL divergence of the model from it, and how "
                                              "often both have the same most probable token")
                                 ->type_name("MODEL"));
  add({TARN_TASK_CAUSAL_LM},
      eval->add_option("--logits", options->logits, "Write the logits after every token to a .npy file: float32 [tokens, vocab]")
          ->output_file());
  add({TARN_TASK_MASKED_LM},
      AddInteger<uint64_t>(eval, "-s,--seed", &options->seed, "Seed of the choice of hidden tokens (default: 42)"));
  add({TARN_TASK_MASKED_LM},
      AddInteger<int32_t>(eval, "--mask", &options->mask, "Token id that hides a token (default: the model's mask token)", 0));
  return added;
}

}  // namespace

std::string EvalStep(const EvalOptions& options, const std::string& file) {
  return options.files.size() == 1 ? "eval" : "eval " + tarn::tools::Printable(FileName(file));
}

int WriteResult(const EvalOptions& options, const Model& model, const std::vector<EvalRow>& rows, const char* unit) {
  WriteStdout(options.json ? JsonText(ResultJson(model, rows)) : ResultText(rows, unit));
  return 0;
}

void AddEval(App* app, Command* command) {
  App* eval = app->add_subcommand("eval", "Measure the quality of a model: loss, accuracy or exact matches");
  const auto options = std::make_shared<EvalOptions>();
  const auto questions = std::make_shared<std::vector<std::string>>();
  TaskOptions* by_task = &options->by_task;
  RequireModelPath(eval, &options->model.path);
  eval->add_option("-f,--file", options->files,
                   "Text; classification: lines LABEL<tab>TEXT; seq2seq: lines SOURCE<tab>TARGET. Without tokenizer: causal_lm and "
                   "masked_lm a .npy file of int32 ids, the others ids in place of texts, separated by commas or else by spaces. "
                   "-: standard "
                   "input; repeatable")
      ->input_file()
      ->allow_extra_args(false);
  by_task->Only({TARN_TASK_CAUSAL_LM},
                eval->add_option("--choices", *questions,
                                 "Questions instead of texts: lines {\"context\": ..., \"choices\": [...], \"answer\": i}; "
                                 "-: standard input; repeatable")
                    ->input_file()
                    ->allow_extra_args(false));
  const std::vector<const Option*> of_texts = AddTextOptions(eval, options.get());
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
      "causal_lm: nats per token. The first token of the text is not scored; without --stride, the first of each\n"
      "block is not scored either.\n"
      "masked_lm: nats per hidden token; 15 % of each block are hidden. classification: accuracy. seq2seq: share of\n"
      "outputs that equal the target. Several files: a row for each, and the total.\n"
      "Examples (listops: tarn-convert examples/train/checkpoints/listops-abc -o listops.tarn; others as in tarn help run):\n"
      "  tarn eval shakespeare-rfa-gate-int8.tarn -f README.md\n"
      "  tarn eval shakespeare-abc-mlp-int8.tarn -f README.md --begin 1000 --block 256 --stride 128 --json\n"
      "  tarn eval shakespeare-abc-mlp-int8.tarn -f README.md --block 256 --against shakespeare-rfa-gate-int8.tarn\n"
      "  printf '9\\tX29N47]0]\\n' | tarn eval listops.tarn -f -\n"
      "  printf '3 March 1998\\t1998-03-03\\n' | tarn eval dates.tarn -f - --beam 4");
  eval->callback([=] {
    ChooseFiles(*questions, of_texts, options.get());
    if (eval->count("--against") > 0 && options->against.empty()) throw UsageError("eval: --against is '', expected a model file");
    *command = [=] { return Eval(*options); };
  });
}

}  // namespace tarn_cli
