// Writes a Graph as a .tarn file (schema/FORMAT.md).
#ifndef TARN_TOOLS_CONVERT_WRITER_MODEL_WRITER_H_
#define TARN_TOOLS_CONVERT_WRITER_MODEL_WRITER_H_

#include <cstdint>
#include <functional>

#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/graph/graph.h"
#include "tools/convert/graph/rounded.h"
#include "tools/convert/writer/output_file.h"

namespace tarn::convert {

struct ModelSizes {
  uint64_t graph_bytes;
  uint64_t weight_bytes;
  uint64_t file_bytes;
};

// Called with the number of elements of the file's tensors that were done since the last call.
using Advance = std::function<void(uint64_t elements)>;

// Weights are read, quantized and written in blocks: memory holds a few of them, the scales of one tensor, and the largest folded
// tensor. A matrix that `rounded` has is written as it is there, where the graph stores it in that type, or else as the numbers it
// stands for. Errors: what `weights` and `sink` throw; a folded tensor that is not finite; a weight that f16 cannot hold; a graph
// of 2 GiB or more.
ModelSizes WriteModel(const Graph& graph, const WeightReader& weights, ByteSink* sink, const Advance& advance = nullptr,
                      const RoundedMatrices* rounded = nullptr);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_WRITER_MODEL_WRITER_H_
