// The FlatBuffer of a Graph, and where its tensors lie in the weight section.
#ifndef TARN_TOOLS_CONVERT_WRITER_GRAPH_BUFFER_H_
#define TARN_TOOLS_CONVERT_WRITER_GRAPH_BUFFER_H_

#include <cstdint>
#include <vector>

#include "tools/convert/graph/graph.h"

namespace tarn::convert {

constexpr uint64_t kTensorAlignment = 64;

uint64_t TensorBytes(const GraphTensor& tensor);

// One offset per tensor, in the order of the graph.
std::vector<uint64_t> TensorOffsets(const Graph& graph);

// Errors: a buffer of 2 GiB or more.
flatbuffers::DetachedBuffer BuildGraphBuffer(const Graph& graph, const std::vector<uint64_t>& offsets);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_WRITER_GRAPH_BUFFER_H_
