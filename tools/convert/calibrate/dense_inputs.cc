#include "tools/convert/calibrate/dense_inputs.h"

#include <algorithm>
#include <map>

namespace tarn::convert {
namespace {

// Tensors that embedding ops read, by number, and those that dense layers multiply with, with their inputs.
struct Readers {
  std::vector<uint32_t> tables;
  std::vector<uint32_t> dense;  // in the order of the first op
  std::map<uint32_t, std::vector<format::Slice>> inputs;
};

bool Contains(const std::vector<uint32_t>& list, uint32_t tensor) {
  return std::find(list.begin(), list.end(), tensor) != list.end();
}

Readers ReadersOf(const Graph& graph) {
  Readers readers;
  for (const GraphOp& op : graph.programs[0].ops) {
    if (op.tensors.empty() || graph.tensors[op.tensors[0]].scales < 0) continue;
    const uint32_t tensor = op.tensors[0];
    if (op.type == format::OpAttributes::Embedding && !Contains(readers.tables, tensor)) readers.tables.push_back(tensor);
    if (op.type != format::OpAttributes::FullyConnected) continue;
    if (!Contains(readers.dense, tensor)) readers.dense.push_back(tensor);
    readers.inputs[tensor].push_back(op.inputs[0]);
  }
  return readers;
}

bool Same(const std::vector<format::Slice>& a, const std::vector<format::Slice>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const format::Slice& x, const format::Slice& y) {
    return x.value() == y.value() && x.begin() == y.begin() && x.width() == y.width();
  });
}

}  // namespace

std::vector<DenseGroup> FindDenseGroups(const Graph& graph) {
  const Readers readers = ReadersOf(graph);
  std::vector<DenseGroup> groups;
  for (const uint32_t tensor : readers.dense) {
    const std::vector<format::Slice>& inputs = readers.inputs.at(tensor);
    const bool is_embedding = Contains(readers.tables, tensor);
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const DenseGroup& group) {
      return Same(group.inputs, inputs) && group.is_embedding == is_embedding;
    });
    DenseGroup& group = found == groups.end() ? groups.emplace_back() : *found;
    group.columns = inputs[0].width();
    group.matrices.push_back(graph.tensors[tensor].name);
    group.inputs = inputs;
    group.is_embedding = is_embedding;
  }
  return groups;
}

std::vector<std::string> FindLookupTables(const Graph& graph) {
  const Readers readers = ReadersOf(graph);
  std::vector<std::string> names;
  for (const uint32_t tensor : readers.tables) {
    if (!Contains(readers.dense, tensor)) names.push_back(graph.tensors[tensor].name);
  }
  return names;
}

}  // namespace tarn::convert
