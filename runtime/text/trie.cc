#include "runtime/text/trie.h"

namespace tarn {

Status Trie::Check(uint32_t value_limit) const {
  if (labels_.empty() && first_edges_.empty() && values_.empty()) return Ok();
  const size_t nodes = values_.size();
  if (nodes == 0 || labels_.size() != nodes - 1 || first_edges_.size() != nodes + 1) {
    return Error(TARN_BAD_FORMAT, "%zu values, %zu labels, %zu first_edges; n, n - 1 and n + 1 expected", nodes, labels_.size(),
                 first_edges_.size());
  }
  if (first_edges_[0] != 0 || first_edges_[nodes] != labels_.size()) {
    return Error(TARN_BAD_FORMAT, "first_edges from %u to %u, 0 to %zu expected", first_edges_[0], first_edges_[nodes],
                 labels_.size());
  }
  for (size_t node = 0; node < nodes; ++node) {
    const uint32_t begin = first_edges_[node], end = first_edges_[node + 1];
    // An edge e leads to node e + 1: later than its own node, and so never back.
    if (end < begin || end > labels_.size() || (end > begin && begin < node)) {
      return Error(TARN_BAD_FORMAT, "node %zu has edges %u to %u of %zu", node, begin, end, labels_.size());
    }
    for (uint32_t edge = begin; edge + 1 < end; ++edge) {
      if (labels_[edge] >= labels_[edge + 1]) return Error(TARN_BAD_FORMAT, "the labels of node %zu do not ascend", node);
    }
    if (values_[node] < -1 || values_[node] >= static_cast<int64_t>(value_limit)) {
      return Error(TARN_BAD_FORMAT, "node %zu has value %d, -1 to %lld expected", node, values_[node],
                   static_cast<long long>(value_limit) - 1);
    }
  }
  return Ok();
}

uint32_t Trie::Child(uint32_t node, uint8_t label) const {
  uint32_t begin = first_edges_[node], end = first_edges_[node + 1];
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (labels_[middle] == label) return middle + 1;
    if (labels_[middle] < label) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return kNone;
}

uint32_t Trie::Walk(uint32_t node, Span<const uint8_t> string) const {
  for (size_t i = 0; i < string.size() && node != kNone; ++i) node = Child(node, string[i]);
  return node;
}

int32_t Trie::Find(Span<const uint8_t> string) const {
  if (empty()) return -1;
  const uint32_t node = Walk(kRoot, string);
  return node == kNone ? -1 : value(node);
}

size_t Trie::MaxDepth() const {
  size_t depth = 0;
  // A level is a range of nodes; its edges lead to the next one.
  for (uint32_t end = 1; end <= labels_.size(); ++depth) {
    const uint32_t next_end = first_edges_[end] + 1;
    if (next_end <= end) break;
    end = next_end;
  }
  return depth;
}

}  // namespace tarn
