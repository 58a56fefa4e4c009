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
  std::string file;
  tarn::tools::EvaluationRange range;
  std::string logits;
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

// What every task reports beside its numbers: the model before them, how long `count` of `unit` ("lines") took behind them. Prints
// JSON or a table and returns the exit status.
int WriteResult(const EvalOptions& options, const Model& model, std::vector<EvalNumber> numbers, const char* unit, uint64_t count,
                double seconds);

// Print their result and return the exit status. Throw Failure.
int EvalCausal(const EvalOptions& options, const Model& model);
int EvalSeq2Seq(const EvalOptions& options, const Model& model);
int EvalClassification(const EvalOptions& options, const Model& model);
int EvalMasked(const EvalOptions& options, const Model& model);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_EVAL_H_
