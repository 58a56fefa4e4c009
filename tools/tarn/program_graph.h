// The programs of a model as graphs to be drawn: ops with their states and tensors, layers that are alike once.
#ifndef TARN_TOOLS_TARN_PROGRAM_GRAPH_H_
#define TARN_TOOLS_TARN_PROGRAM_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/tarn/model.h"

namespace tarn_cli {

// A state or a tensor.
struct GraphArray {
  std::string name;  // without that of its op, where it begins with that
  std::string type;  // "f32 [4, 128, 64]"
  uint64_t bytes;
};

struct GraphOp {
  std::string name;  // without that of its layer
  std::string kind;
  std::string detail;
  std::vector<GraphArray> states;
  std::vector<GraphArray> tensors;
  std::vector<size_t> reads;         // ops of the graph before it whose values it reads
  std::vector<std::string> outside;  // values that it reads and no op before it writes, as "tokens"
};

// Ops of the graph, [begin, end): layers that come `repeats` times, or ops outside of layers.
struct GraphBlock {
  std::string title;  // "layers 0 to 11"; empty outside of layers
  size_t repeats = 1;
  size_t begin = 0;
  size_t end = 0;
};

struct ProgramGraph {
  std::string name;  // "decode"
  std::vector<GraphOp> ops;
  std::vector<GraphBlock> blocks;  // all ops, in their order
};

struct ModelGraph {
  std::vector<ProgramGraph> programs;
  std::vector<GraphArray> shared;  // tensors that belong to no op
};

// States and tensors belong to every op that reads them; those that none reads, as scales, to the op whose name begins theirs.
// Layers are ops whose names have "layers.N." in common; those that follow each other with equal ops, attributes, shapes and
// connections are drawn once, also where several layers alternate.
ModelGraph BuildGraph(const Model& model);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_PROGRAM_GRAPH_H_
