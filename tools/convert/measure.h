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

// What the precision of `graph` costs, against the same model with weights and states in f32; says so on standard output.
// `precision`: in words. The models are written to files in the directory of `output`, which are gone afterwards. Errors: of
// WriteModel(), of the library and of tools::Evaluation.
MeasuredLoss MeasureLoss(const Graph& f32, const Graph& graph, const WeightReader& weights, const RoundedMatrices& rounded,
                         const MeasureOptions& options, const std::string& output, const std::string& precision);

constexpr size_t kLeastCalibration = 256;  // tokens; fewer say nothing of a layer's inputs

struct CalibrationOptions {
  std::string file;         // as of MeasureOptions
  uint64_t tokens = 16384;  // at most, at least kLeastCalibration
};

// Calibrate() for a text; the tokenizer is that of `f32`. `threads` 0: tarn_default_threads(). Errors: a text of fewer tokens than
// kLeastCalibration; those of MeasureLoss() and Calibrate().
RoundedMatrices RoundForText(const Graph& f32, const Graph& graph, const WeightReader& weights, const CalibrationOptions& options,
                             uint32_t threads, const std::string& output);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_MEASURE_H_
