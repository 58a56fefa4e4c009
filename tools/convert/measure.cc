#include "tools/convert/measure.h"

#include <tarn/tarn.h>

#include <memory>
#include <utility>
#include <vector>

#include "tools/common/signals.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/mapped_file.h"
#include "tools/convert/writer/model_writer.h"
#include "tools/convert/writer/output_file.h"

namespace tarn::convert {

tools::Score Measure(const Graph& graph, const WeightReader& weights, const MeasureOptions& options, const std::string& output,
                     const std::string& step) {
  OutputFile scratch(output + ".eval", {}, output);
  WriteModel(graph, weights, &scratch, [](uint64_t) {
    if (tools::Interrupted()) Fail("interrupted");
  });
  tarn_source source = TARN_SOURCE_INIT;
  source.path = scratch.Flush().c_str();
  tarn_model* opened = nullptr;
  tarn_error error;
  if (tarn_model_open(&source, nullptr, &opened, &error) != TARN_OK) {
    const std::string message = error.message, path = source.path;
    Fail(output, message.compare(0, path.size(), path) == 0 ? message.substr(path.size()) : ": " + message);
  }
  const std::unique_ptr<tarn_model, void (*)(tarn_model*)> model(opened, tarn_model_close);
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  config.threads = options.threads != 0 ? options.threads : tarn_default_threads();
  config.max_chunk = 64;
  std::vector<int32_t> tokens = tools::EvaluationTokens(model.get(), options.range, ReadFile(options.file), options.file);
  tools::EvaluationPlan plan;
  plan.block = options.range.block;
  return tools::Evaluation(model.get(), config, std::move(tokens), std::move(plan)).Run(step);
}

}  // namespace tarn::convert
