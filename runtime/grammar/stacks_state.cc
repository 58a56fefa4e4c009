// Where a text stands in a grammar, to bytes and back: its stacks and the nodes below them. Depths and buckets follow from those.
#include <cstring>

#include "runtime/grammar/stacks.h"

namespace tarn {
namespace {

struct Header {
  uint32_t items, nodes, may_end;
};

}  // namespace

size_t Stacks::LevelBytes() const {
  return sizeof(Header) + sizeof(Stack) * (size_t{levels_[0].items} + levels_[0].nodes - (kUnknown + 1));
}

void Stacks::SaveLevel(uint8_t* state) const {
  const Level& level = levels_[0];
  const Header header = {level.items, level.nodes, level.may_end ? 1u : 0u};
  std::memcpy(state, &header, sizeof(header));
  state += sizeof(header);
  std::memcpy(state, items_.data(), level.items * sizeof(Stack));
  state += level.items * sizeof(Stack);
  for (uint32_t node = kUnknown + 1; node < level.nodes; ++node, state += sizeof(Stack)) {
    const Stack entry = {nodes_[node].state, nodes_[node].below};
    std::memcpy(state, &entry, sizeof(entry));
  }
}

void Stacks::RestoreLevel(const uint8_t* state) {
  Return(0);
  Header header;
  std::memcpy(&header, state, sizeof(header));
  state += sizeof(header);
  std::memcpy(items_.data(), state, header.items * sizeof(Stack));
  state += header.items * sizeof(Stack);
  for (; node_count_ < header.nodes; state += sizeof(Stack)) {
    Stack entry;
    std::memcpy(&entry, state, sizeof(entry));
    nodes_[node_count_] = {entry.state, entry.node, nodes_[entry.node].depth + 1, UINT32_MAX};
    AddToBucket(node_count_++);
  }
  levels_[0] = {header.items, header.nodes, header.may_end != 0, false};
  count_ = 1;
}

}  // namespace tarn
