// tarn classify: texts in, labels and their probabilities out.
#include <memory>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/tarn/classifier.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/files.h"
#include "tools/tarn/input.h"
#include "tools/tarn/probabilities.h"
#include "tools/tarn/report.h"
#include "tools/tarn/task.h"
#include "tools/tarn/translation.h"

namespace tarn_cli {
namespace {

using tarn::tools::AddInteger;
struct ClassifyOptions {
  ModelOptions model;
  SessionOptions session;
  Input input;
  uint32_t batch = 1;
  uint32_t most = 5;
  bool json = false;
};

std::vector<Tokens> Texts(const ClassifyOptions& options, const Model& model) {
  const Input& input = options.input;
  RequireIds(input.tokens(), model, model.info().source_vocab_size, "classify", "--tokens");
  if (!input.tokens().empty()) return {input.tokens()};
  if (!input.is_file()) return {SourceTokens(model, input.Text(), "the text")};
  std::vector<Tokens> texts;
  for (Line line : ReadLines(input.file())) {
    std::string label;  // may be there, as `eval` wants it
    CutAtTab(&line, &label);
    texts.push_back(SourceTokens(model, line.text, line.what));
  }
  return texts;
}

// "1  0.9314  0  0.0686", between tabs
std::string LabelsText(const std::vector<Probability>& labels) {
  std::string text;
  for (const Probability& label : labels) text += Format("%s%u\t%.4f", text.empty() ? "" : "\t", label.id, label.value);
  return text + "\n";
}

Json LabelsJson(size_t tokens, const std::vector<Probability>& labels) {
  Json list = Json::Array();
  for (const Probability& label : labels) list.Add({{"label", label.id}, {"probability", label.value}});
  return {{"tokens", tokens}, {"labels", list}};
}

int ClassifyTexts(const ClassifyOptions& options) {
  const Model model(options.model);
  RequireTask(model, "classify", {TARN_TASK_CLASSIFICATION});
  const std::vector<Tokens> texts = Texts(options, model);
  Json list = Json::Array();
  const auto start = Clock::now();
  const auto sink = [&](size_t index, const float* logits) {
    const std::vector<Probability> labels = MostProbable(logits, model.info().num_labels, options.most);
    if (!options.json) return WriteStdout(LabelsText(labels));
    list.Add(LabelsJson(texts[index].size(), labels));
    return true;
  };
  Classify(model, SessionConfig(options.session), options.batch, texts, "classify", sink);
  if (options.json) {
    WriteStdout(JsonText({{"model", model.info().name}, {"seconds", SecondsSince(start)}, {"texts", list}}));
  }
  return 0;
}

}  // namespace

void AddClassify(App* app, Command* command) {
  App* classify = app->add_subcommand("classify", "Classify texts, with a classification model");
  const auto options = std::make_shared<ClassifyOptions>();
  RequireModelPath(classify, &options->model.path);
  options->input.AddOptions(classify, "Text", "One text a line; what stands before a tab is ignored", "Text");
  AddInteger<uint32_t>(classify, "-k,--top-k", &options->most, "Show the N most probable labels (default: 5)", 1);
  AddInteger<uint32_t>(classify, "--batch", &options->batch, "Texts at a time (default: 1)", 1, kMostSequences);
  classify->add_flag("--json", options->json, "Print one JSON object");
  AddSessionOptions(classify, &options->session);
  AddModelOptions(classify, &options->model);
  classify->footer(
      "A line for every text: the most probable label, its probability, the second one, ...\n"
      "Examples (tarn-convert examples/train/checkpoints/listops-abc -o listops.tarn):\n"
      "  tarn classify listops.tarn -p \"X29N47]0]\"\n"
      "  printf 'X29]\\nN47]\\n' | tarn classify listops.tarn --batch 16 -k 1");
  classify->callback([=] {
    options->input.Choose("classify");
    if (options->input.is_nothing()) throw UsageError("classify: no text, expected one of -p, -f and --tokens");
    *command = [=] { return ClassifyTexts(*options); };
  });
}

}  // namespace tarn_cli
