// What a model's precision costs: its loss on a text, found out by running it. And rounding for a text.
#ifndef TARN_TOOLS_CONVERT_MEASURE_H_
#define TARN_TOOLS_CONVERT_MEASURE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/common/evaluation.h"
#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/graph/graph.h"
#include "tools/convert/graph/rounded.h"

namespace tarn::convert {

struct MeasureOptions {
  std::string file;  // a text, or a .npy file of ids for a model without tokenizer
  tools::EvaluationRange range;
  uint32_t threads = 0;  // 0: tarn_default_threads()
};

// Writes the model, with matrices that are rounded already, to a file in the directory of `output`, which is gone afterwards, and
// runs it over the text. `step` names it to the user. Errors: of WriteModel(), of the library and of tools::Evaluation.
tools::Score Measure(const Graph& graph, const WeightReader& weights, const RoundedMatrices& rounded, const MeasureOptions& options,
                     const std::string& output, const std::string& step);

constexpr size_t kLeastCalibration = 256;  // tokens; fewer say nothing of a layer's inputs

struct CalibrationOptions {
  std::string file;         // as of MeasureOptions
  uint64_t tokens = 16384;  // at most, at least kLeastCalibration
};

// Calibrate() for a text; the tokenizer is that of `f32`. `threads` 0: tarn_default_threads(). Errors: a text of fewer tokens than
// kLeastCalibration; those of Measure() and Calibrate().
RoundedMatrices RoundForText(const Graph& f32, const Graph& graph, const WeightReader& weights, const CalibrationOptions& options,
                             uint32_t threads, const std::string& output);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_MEASURE_H_
