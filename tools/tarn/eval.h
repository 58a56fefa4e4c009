// tarn eval: what the command line says, and a measurement for every task.
#ifndef TARN_TOOLS_TARN_EVAL_H_
#define TARN_TOOLS_TARN_EVAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/evaluation.h"
#include "tools/tarn/json.h"
#include "tools/tarn/model.h"
#include "tools/tarn/task.h"
#include "tools/tarn/translation.h"

namespace tarn_cli {

struct EvalOptions {
  ModelOptions model;
  SessionOptions session;
  std::vector<std::string> files;  // of `choices` too
  bool choices = false;            // the files have questions
  tarn::tools::EvaluationRange range;
  std::string logits;
  std::string against;  // a model file
  bool json = false;
  TranslationOptions translation;  // batch also of classification
  uint64_t seed = 42;              // of the hidden positions
  int32_t mask = -1;               // -1: the model's
  TaskOptions by_task;
};

// A number of a result, with its key in JSON and its words in the table. Without words it stands in JSON alone.
struct EvalNumber {
  const char* key;
  Json value;
  const char* label = "";
  std::string text = "";
};

// What a file gave, or all of them did.
struct EvalRow {
  std::string name;
  std::vector<EvalNumber> numbers;
  uint64_t count = 0;  // of the unit of a task ("lines")
  double seconds = 0;  // that they took
};

// What every task reports beside its numbers: the model before them, `unit`s per second behind them. The last row is that of all
// files; where there are several, rows of each come before. Prints JSON or a table and returns the exit status.
int WriteResult(const EvalOptions& options, const Model& model, const std::vector<EvalRow>& rows, const char* unit);

// "eval", or "eval NAME" with the name of the file where there are several: the name of a step.
std::string EvalStep(const EvalOptions& options, const std::string& file);

// What a file gave. `Sums` are zero at first, and have count() of the unit and Add().
template <typename Sums>
struct Measured {
  Sums sums;
  double seconds = 0;
};

// Measures every file, adds the sums up, and writes what `numbers` makes of them. `measure` times the model alone.
template <typename Sums, typename Measure, typename Numbers>
int EvalFiles(const EvalOptions& options, const Model& model, const char* unit, const Measure& measure, const Numbers& numbers) {
  std::vector<EvalRow> rows;
  Measured<Sums> total;
  for (const std::string& file : options.files) {
    const Measured<Sums> found = measure(file);
    total.sums.Add(found.sums);
    total.seconds += found.seconds;
    if (options.files.size() > 1) rows.push_back({file, numbers(found.sums), found.sums.count(), found.seconds});
  }
  rows.push_back({"total", numbers(total.sums), total.sums.count(), total.seconds});
  return WriteResult(options, model, rows, unit);
}

// Print their result and return the exit status. Throw Failure.
int EvalCausal(const EvalOptions& options, const Model& model);
int EvalChoices(const EvalOptions& options, const Model& model);
int EvalSeq2Seq(const EvalOptions& options, const Model& model);
int EvalClassification(const EvalOptions& options, const Model& model);
int EvalMasked(const EvalOptions& options, const Model& model);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_EVAL_H_
