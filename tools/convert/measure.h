// What a model's precision costs: its loss on a text, found out by running it.
#ifndef TARN_TOOLS_CONVERT_MEASURE_H_
#define TARN_TOOLS_CONVERT_MEASURE_H_

#include <functional>
#include <string>

#include "tools/common/evaluation.h"
#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/graph/graph.h"

namespace tarn::convert {

struct MeasureOptions {
  std::string file;  // a text, or a .npy file of ids for a model without tokenizer
  tools::EvaluationRange range;
  uint32_t threads = 0;  // 0: tarn_default_threads()
};

// Writes the model to a file in the directory of `output`, which is gone afterwards, and runs it over the text. `step` names it to
// the user. Errors: of WriteModel() and of tools::Evaluation.
tools::Score Measure(const Graph& graph, const WeightReader& weights, const MeasureOptions& options, const std::string& output,
                     const std::string& step);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_MEASURE_H_
