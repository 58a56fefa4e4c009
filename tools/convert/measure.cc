#include "tools/convert/measure.h"

#include <tarn/tarn.h>

#include <memory>
#include <utility>
#include <vector>

#include "tools/common/signals.h"
#include "tools/convert/calibrate/calibrate.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/writer/model_writer.h"
#include "tools/convert/writer/output_file.h"

namespace tarn::convert {
namespace {

using OpenedModel = std::unique_ptr<tarn_model, void (*)(tarn_model*)>;

OpenedModel OpenScratch(const Graph& graph, const WeightReader& weights, const RoundedMatrices& rounded,
                        const std::string& output) {
  OutputFile scratch(output + ".eval", {}, output);
  const auto stop_if_interrupted = [](uint64_t) {
    if (tools::Interrupted()) Fail("interrupted");
  };
  WriteModel(graph, weights, &scratch, stop_if_interrupted, &rounded);
  tarn_source source = TARN_SOURCE_INIT;
  source.path = scratch.Flush().c_str();
  tarn_model* opened = nullptr;
  tarn_error error;
  if (tarn_model_open(&source, nullptr, &opened, &error) != TARN_OK) {
    const std::string message = error.message, path = source.path;
    Fail(output, message.compare(0, path.size(), path) == 0 ? message.substr(path.size()) : ": " + message);
  }
  return {opened, tarn_model_close};
}

}  // namespace

tools::Score Measure(const Graph& graph, const WeightReader& weights, const RoundedMatrices& rounded, const MeasureOptions& options,
                     const std::string& output, const std::string& step) {
  const OpenedModel model = OpenScratch(graph, weights, rounded, output);
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.threads = options.threads != 0 ? options.threads : tarn_default_threads();
  config.max_chunk = 64;
  std::vector<int32_t> tokens = tools::EvaluationTokens(model.get(), options.range, ReadFile(options.file), options.file);
  tools::EvaluationPlan plan;
  plan.block = options.range.block;
  return tools::Evaluation(model.get(), config, std::move(tokens), std::move(plan)).Run(step);
}

RoundedMatrices RoundForText(const Graph& f32, const Graph& graph, const WeightReader& weights, const CalibrationOptions& options,
                             uint32_t threads, const std::string& output) {
  std::vector<int32_t> tokens;
  {
    const OpenedModel model = OpenScratch(f32, weights, {}, output);
    tokens = tools::EvaluationTokens(model.get(), {}, ReadFile(options.file), options.file, kLeastCalibration);
  }
  const CalibrationInput input{SpreadTokens(tokens, options.tokens), threads != 0 ? threads : tarn_default_threads()};
  return Calibrate(graph, f32, weights, input, output);
}

}  // namespace tarn::convert
