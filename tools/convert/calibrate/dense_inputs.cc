#include "tools/convert/calibrate/dense_inputs.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tarn::convert {
namespace {

// Tensors that embedding ops read, by number, and those that dense layers multiply with, with their inputs.
struct Readers {
  std::vector<uint32_t> tables;
  std::vector<uint32_t> dense;  // in the order of the first op
  std::map<uint32_t, std::vector<format::Slice>> inputs;
  std::map<uint32_t, std::vector<uint32_t>> residuals;  // as many as inputs where each product is added to a value
};

bool Contains(const std::vector<uint32_t>& list, uint32_t tensor) {
  return std::find(list.begin(), list.end(), tensor) != list.end();
}

// Whether `slice` is all of `value`.
bool IsAllOf(const GraphProgram& program, const format::Slice& slice, uint32_t value) {
  return slice.value() == value && slice.begin() == 0 && slice.width() == program.values[value].width;
}

// What `value` is added to.
std::optional<uint32_t> ResidualOf(const GraphProgram& program, uint32_t value) {
  for (const GraphOp& op : program.ops) {
    if (op.type != format::OpAttributes::Add) continue;
    for (size_t i = 0; i < 2; ++i) {
      const uint32_t other = op.inputs[1 - i].value();
      if (IsAllOf(program, op.inputs[i], value) && IsAllOf(program, op.inputs[1 - i], other) && other < value) return other;
    }
  }
  return std::nullopt;
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
    if (const auto residual = ResidualOf(graph.programs[0], op.outputs[0])) readers.residuals[tensor].push_back(*residual);
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
    const auto residuals = readers.residuals.find(tensor);
    group.residuals.clear();
    if (group.matrices.size() == 1 && residuals != readers.residuals.end() && residuals->second.size() == inputs.size()) {
      group.residuals = residuals->second;
    }
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
