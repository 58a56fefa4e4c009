// A model of the graph that is converted, run for values in its middle.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_SCRATCH_MODEL_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_SCRATCH_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/graph/graph.h"
#include "tools/convert/graph/rounded.h"

namespace tarn::convert {

// A model file beside the output that is gone afterwards, and an instance of its program "decode" for one sequence, which ends with
// the last of the values that are wanted: those are its outputs, which the interpreter keeps to the end of a chunk. A session
// would refuse such a program, since it gives no logits.
class ScratchModel {
 public:
  static constexpr size_t kChunk = 64;
  static constexpr size_t kMostValues = 16;  // outputs of a program of the format

  // `graph`: in f32, of the task CausalLm. `values`: of its program, at most kMostValues, all f32. `output`: the file that is
  // converted to. Errors: those of WriteModel and of the library.
  ScratchModel(const Graph& graph, const std::vector<uint32_t>& values, const WeightReader& weights, const RoundedMatrices& rounded,
               const std::string& output, uint32_t threads);
  ~ScratchModel();
  ScratchModel(const ScratchModel&) = delete;
  ScratchModel& operator=(const ScratchModel&) = delete;

  // Tokens from a reset on that it takes.
  uint64_t max_context() const;
  void Reset();
  // 1 to kChunk tokens, which were checked; with them the rows of all values are known. Errors: those of the library.
  void Run(const int32_t* tokens, size_t count);
  // Rows of value i of `values` [tokens of the last Run(), width of the value].
  const float* rows(size_t i) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_SCRATCH_MODEL_H_
