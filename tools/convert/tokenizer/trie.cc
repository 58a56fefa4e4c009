#include "tools/convert/tokenizer/trie.h"

#include <vector>

namespace tarn::convert {

// std::map has the strings in the order of their bytes (as char; compared as unsigned): those with a common beginning are a range.
TrieTables MakeTrie(const std::map<std::string, int32_t>& strings) {
  TrieTables trie;
  if (strings.empty()) return trie;
  using Place = std::map<std::string, int32_t>::const_iterator;
  struct Node {
    Place begin, end;  // the strings that begin as the path to this node
    size_t depth;
  };
  std::vector<Node> nodes = {{strings.begin(), strings.end(), 0}};
  for (size_t i = 0; i < nodes.size(); ++i) {  // grows meanwhile: breadth-first
    const Node node = nodes[i];
    trie.first_edges.push_back(static_cast<uint32_t>(trie.labels.size()));
    Place at = node.begin;
    const bool ends = at->first.size() == node.depth;
    trie.values.push_back(ends ? at->second : -1);
    if (ends) ++at;
    while (at != node.end) {
      const char label = at->first[node.depth];
      Place next = at;
      while (next != node.end && next->first[node.depth] == label) ++next;
      trie.labels.push_back(static_cast<uint8_t>(label));
      nodes.push_back({at, next, node.depth + 1});
      at = next;
    }
  }
  trie.first_edges.push_back(static_cast<uint32_t>(trie.labels.size()));
  return trie;
}

}  // namespace tarn::convert
