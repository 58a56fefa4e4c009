// tarn eval with a classification model: how many lines LABEL<tab>TEXT it gets right.

#include "tools/common/integer.h"
#include "tools/tarn/classifier.h"
#include "tools/tarn/clock.h"
#include "tools/tarn/eval.h"
#include "tools/tarn/files.h"
#include "tools/tarn/probabilities.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

struct Labelled {
  std::vector<Tokens> texts;
  std::vector<uint32_t> labels;
};

Labelled ReadLabelled(const Model& model, const std::string& path) {
  Labelled lines;
  for (Line line : ReadLines(path)) {
    std::string label;
    if (!CutAtTab(&line, &label)) throw Failure(line.what + " has no tab, expected LABEL<tab>TEXT");
    const uint32_t last = model.info().num_labels - 1;
    const std::optional<uint32_t> value = tarn::tools::ParseInteger<uint32_t>(label, 0, last);
    if (!value) throw Failure(line.what + ": the label " + tarn::tools::NotInteger<uint32_t>(label, 0, last));
    lines.labels.push_back(*value);
    lines.texts.push_back(SourceTokens(model, line.text, line.what));
  }
  return lines;
}

}  // namespace

int EvalClassification(const EvalOptions& options, const Model& model) {
  const Labelled lines = ReadLabelled(model, options.file);
  const size_t count = lines.texts.size();
  size_t correct = 0;
  double nats = 0;
  const auto start = Clock::now();
  Classify(model, SessionConfig(options.session), options.translation.batch, lines.texts, "eval",
           [&](size_t index, const float* logits) {
             const uint32_t label = lines.labels[index];
             correct += MostProbable(logits, model.info().num_labels, 1)[0].id == label;
             nats += tarn::tools::Loss(logits, model.info().num_labels, label);
             return true;
           });
  const double seconds = SecondsSince(start);
  const double accuracy = static_cast<double>(correct) / static_cast<double>(count);
  const double nats_per_label = nats / static_cast<double>(count);
  return WriteResult(options, model,
                     {{"lines", count, "lines", std::to_string(count)},
                      {"correct", correct, "correct", std::to_string(correct)},
                      {"accuracy", accuracy, "accuracy", Format("%.4f", accuracy)},
                      {"nats_per_label", nats_per_label, "nats/label", Format("%.6f", nats_per_label)}},
                     "lines", count, seconds);
}

}  // namespace tarn_cli
