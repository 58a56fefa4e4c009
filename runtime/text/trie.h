// Strings of bytes and their values, in arrays of a model file (schema/tarn.fbs, Trie).
#ifndef TARN_RUNTIME_TEXT_TRIE_H_
#define TARN_RUNTIME_TEXT_TRIE_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"

namespace tarn {

class Trie {
 public:
  Trie() = default;  // without strings
  Trie(Span<const uint32_t> first_edges, Span<const uint8_t> labels, Span<const int32_t> values)
      : first_edges_(first_edges), labels_(labels), values_(values) {}

  // Proves that no edge leads out of the arrays or back, and that values are below `value_limit`. Errors: TARN_BAD_FORMAT.
  Status Check(uint32_t value_limit) const;

  bool empty() const { return labels_.empty(); }  // then it has no node but perhaps the root
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;
  // The node that an edge of `node` leads to, or kNone.
  uint32_t Child(uint32_t node, uint8_t label) const;
  // The node that `string` leads to from `node`, or kNone.
  uint32_t Walk(uint32_t node, Span<const uint8_t> string) const;
  // The value of `string`; -1: it has none.
  int32_t Find(Span<const uint8_t> string) const;
  // Of the string that ends at `node`; -1: none does.
  int32_t value(uint32_t node) const { return values_[node]; }
  // The most bytes of a string.
  size_t MaxDepth() const;

 private:
  Span<const uint32_t> first_edges_;  // [nodes + 1]
  Span<const uint8_t> labels_;        // [nodes - 1]
  Span<const int32_t> values_;        // [nodes]
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_TRIE_H_
