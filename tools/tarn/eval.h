// tarn eval: what the command line says, and a measurement for every task.
#ifndef TARN_TOOLS_TARN_EVAL_H_
#define TARN_TOOLS_TARN_EVAL_H_

#include <cstdint>
#include <string>

#include "tools/common/evaluation.h"
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

// Print their result and return the exit status. Throw Failure.
int EvalCausal(const EvalOptions& options, const Model& model);
int EvalSeq2Seq(const EvalOptions& options, const Model& model);
int EvalClassification(const EvalOptions& options, const Model& model);
int EvalMasked(const EvalOptions& options, const Model& model);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_EVAL_H_
