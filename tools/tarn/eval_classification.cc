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

struct LabelSums {
  uint64_t lines = 0;
  uint64_t correct = 0;
  double nats = 0;

  uint64_t count() const { return lines; }
  void Add(const LabelSums& other) {
    lines += other.lines;
    correct += other.correct;
    nats += other.nats;
  }
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

Measured<LabelSums> MeasureLabels(const EvalOptions& options, const Model& model, const std::string& file) {
  const Labelled lines = ReadLabelled(model, file);
  Measured<LabelSums> found;
  found.sums.lines = lines.texts.size();
  const auto start = Clock::now();
  Classify(model, SessionConfig(options.session), options.translation.batch, lines.texts, EvalStep(options, file),
           [&](size_t index, const float* logits) {
             const uint32_t label = lines.labels[index];
             found.sums.correct += MostProbable(logits, model.info().num_labels, 1)[0].id == label;
             found.sums.nats += tarn::tools::Loss(logits, model.info().num_labels, label);
             return true;
           });
  found.seconds = SecondsSince(start);
  return found;
}

std::vector<EvalNumber> Numbers(const LabelSums& sums) {
  const double accuracy = static_cast<double>(sums.correct) / static_cast<double>(sums.lines);
  const double nats_per_label = sums.nats / static_cast<double>(sums.lines);
  return {{"lines", sums.lines, "lines", std::to_string(sums.lines)},
          {"correct", sums.correct, "correct", std::to_string(sums.correct)},
          {"accuracy", accuracy, "accuracy", Format("%.4f", accuracy)},
          {"nats_per_label", nats_per_label, "nats/label", Format("%.6f", nats_per_label)}};
}

}  // namespace

int EvalClassification(const EvalOptions& options, const Model& model) {
  return EvalFiles<LabelSums>(
      options, model, "lines", [&](const std::string& file) { return MeasureLabels(options, model, file); }, Numbers);
}

}  // namespace tarn_cli
