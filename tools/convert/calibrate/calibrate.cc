#include "tools/convert/calibrate/calibrate.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/convert/calibrate/dense_inputs.h"
#include "tools/convert/calibrate/factor.h"
#include "tools/convert/calibrate/round.h"
#include "tools/convert/calibrate/scratch_model.h"
#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kBlock = 256;   // tokens from a reset on: the model sees short contexts and long ones
constexpr double kDamping = 0.01;  // as in the paper

void StopIfInterrupted() {
  if (tools::Interrupted()) Fail("interrupted");
}

class Calibration {
 public:
  Calibration(const Graph& graph, const Graph& f32, const WeightReader& weights, const CalibrationInput& input,
              const std::string& output)
      : graph_(graph), f32_(f32), weights_(weights), input_(input), output_(output) {}

  RoundedMatrices Run() {
    std::vector<DenseGroup> groups = FindDenseGroups(graph_);
    if (groups.empty())
      throw tools::UsageFailure("--calibrate: no dense layer is int8, int4, int3 or int2, of which it rounds the weights");
    // Embeddings change the inputs of all layers. Those that no dense layer reads are rounded alone.
    std::stable_partition(groups.begin(), groups.end(), [](const DenseGroup& group) { return group.is_embedding; });
    for (const std::string& name : FindLookupTables(graph_)) {
      const GraphTensor& tensor = TensorOf(name);
      rounded_.emplace(name, RoundAlone(WeightsOf(tensor), tensor.shape[1], tensor.dtype));
    }
    uint64_t passes = 0;
    for (const DenseGroup& group : groups) passes += Passes(group);
    tools::Progress progress(stderr, isatty(STDERR_FILENO) != 0, "calibrating", passes * input_.tokens.size(), "tokens");
    for (const DenseGroup& group : groups) RoundGroup(group, &progress);
    return std::move(rounded_);
  }

 private:
  static constexpr size_t kInputs = ScratchModel::kMostValues / 2;  // of a pass, each with its residual

  static size_t Passes(const DenseGroup& group) { return (group.inputs.size() + kInputs - 1) / kInputs; }

  const GraphTensor& TensorOf(const std::string& name) const {
    return *std::find_if(graph_.tensors.begin(), graph_.tensors.end(),
                         [&](const GraphTensor& tensor) { return tensor.name == name; });
  }

  size_t WidthOf(uint32_t value) const { return f32_.programs[0].values[value].width; }

  std::vector<float> WeightsOf(const GraphTensor& tensor) const {
    std::vector<float> values(ElementCount(tensor.shape));
    size_t at = 0;
    for (const WeightSpec& part : tensor.parts) {
      weights_.Read(part, 0, ElementCount(part.shape), &values[at]);
      at += ElementCount(part.shape);
    }
    return values;
  }

  void RoundGroup(const DenseGroup& group, tools::Progress* progress) {
    SecondMoments moments(group.columns);
    for (size_t first = 0; first < group.inputs.size(); first += kInputs) {
      AddMoments(group, first, std::min(kInputs, group.inputs.size() - first), &moments, progress);
    }
    moments.Complete();
    Damp(&moments, kDamping);
    StopIfInterrupted();
    const Rounding rounding(moments, input_.threads);
    for (const std::string& name : group.matrices) {
      const GraphTensor& tensor = TensorOf(name);
      const auto advance = [](uint64_t) { StopIfInterrupted(); };
      const std::vector<float> weights = rounding.MakeGood(WeightsOf(tensor), advance);
      rounded_.emplace(name, rounding.Round(weights, tensor.dtype, advance));
    }
  }

  // Of `inputs` inputs of the group from the first on. Runs the model in f32 and, once something is rounded, with that beside it.
  void AddMoments(const DenseGroup& group, size_t first, size_t inputs, SecondMoments* moments, tools::Progress* progress) const {
    const bool has_residuals = !group.residuals.empty();
    std::vector<uint32_t> values;
    for (size_t i = first; i < first + inputs; ++i) values.push_back(group.inputs[i].value());
    for (size_t i = first; has_residuals && i < first + inputs; ++i) values.push_back(group.residuals[i]);
    ScratchModel before(f32_, values, weights_, {}, output_, input_.threads);
    std::unique_ptr<ScratchModel> after;
    if (!rounded_.empty()) after = std::make_unique<ScratchModel>(f32_, values, weights_, rounded_, output_, input_.threads);
    const uint64_t block = std::min(kBlock, before.max_context());
    for (uint64_t at = 0; at < input_.tokens.size();) {
      StopIfInterrupted();
      if (at % block == 0) before.Reset();
      if (at % block == 0 && after) after->Reset();
      const uint64_t end = std::min<uint64_t>(at / block * block + block, input_.tokens.size());
      const auto count = static_cast<size_t>(std::min<uint64_t>(ScratchModel::kChunk, end - at));
      before.Run(&input_.tokens[at], count);
      if (after) after->Run(&input_.tokens[at], count);
      for (size_t i = 0; i < inputs; ++i) {
        const size_t stride = WidthOf(values[i]), begin = group.inputs[first + i].begin();
        const float* const y = before.rows(i) + begin;
        const float* const x = after ? after->rows(i) + begin : y;
        moments->Add(x, count, stride);
        if (!after) continue;
        moments->AddDrift(y, x, count, stride);
        if (!has_residuals) continue;
        moments->AddResidual(before.rows(inputs + i), after->rows(inputs + i), WidthOf(values[inputs + i]), x, count, stride);
      }
      at += count;
      progress->Advance(count);
    }
  }

  const Graph& graph_;
  const Graph& f32_;
  const WeightReader& weights_;
  const CalibrationInput& input_;
  const std::string& output_;
  RoundedMatrices rounded_;
};

}  // namespace

std::vector<int32_t> SpreadTokens(const std::vector<int32_t>& tokens, uint64_t most) {
  if (tokens.size() <= most) return tokens;
  std::vector<int32_t> out;
  const uint64_t block = std::min(kBlock, most), blocks = most / block, last = tokens.size() - block;
  for (uint64_t i = 0; i < blocks; ++i) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(blocks == 1 ? 0 : last / (blocks - 1) * i);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(block));
  }
  return out;
}

RoundedMatrices Calibrate(const Graph& graph, const Graph& f32, const WeightReader& weights, const CalibrationInput& input,
                          const std::string& output) {
  return Calibration(graph, f32, weights, input, output).Run();
}

}  // namespace tarn::convert
