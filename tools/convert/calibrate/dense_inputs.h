// Which matrices of a graph have which inputs.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_DENSE_INPUTS_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_DENSE_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/graph/graph.h"

namespace tarn::convert {

// Matrices [*, columns] that dense layers multiply with the same inputs: q, k and v, say.
struct DenseGroup {
  uint32_t columns = 0;
  std::vector<std::string> matrices;
  std::vector<format::Slice> inputs;  // of the program; several where layers share a matrix
  std::vector<uint32_t> residuals;    // for each input the value that the product is added to; empty: not known of all
  bool is_embedding = false;          // its matrices are embedding tables too: a tied head
};

// The groups of int8, int4, int3 and int2 matrices of a CausalLm graph, in the order in which the program first reads them.
std::vector<DenseGroup> FindDenseGroups(const Graph& graph);

// The int8, int4, int3 and int2 matrices that only embeddings read.
std::vector<std::string> FindLookupTables(const Graph& graph);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_DENSE_INPUTS_H_
