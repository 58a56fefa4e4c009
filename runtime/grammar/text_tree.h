// Texts of tokens as trees of bytes, in the order of a walk over them.
#ifndef TARN_RUNTIME_GRAMMAR_TEXT_TREE_H_
#define TARN_RUNTIME_GRAMMAR_TEXT_TREE_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

struct TextNode {
  uint32_t behind;       // the first node that is not below this one
  uint32_t first_token;  // of the tree's; the tokens of this text end where those of the next node begin
  uint16_t depth;        // bytes of its text
  uint8_t byte;          // the last one
  uint8_t height;        // bytes of the longest text below it, behind its own; 255: that many or more
};

// The texts of the tokens of a tokenizer. Special ones have none, and neither has the end token.
class TokenTexts {
 public:
  TokenTexts(const TokenizerTables& tables, int32_t end_token) : tables_(tables), end_token_(end_token) {
    for (uint32_t i = 0; i < kByteTokens; ++i) bytes_[i] = static_cast<uint8_t>(i);
  }
  Span<const uint8_t> Of(int32_t token) const;
  uint32_t vocab_size() const { return tables_.vocab_size; }

 private:
  const TokenizerTables& tables_;
  int32_t end_token_;
  uint8_t bytes_[kByteTokens];
};

// The text of a token from a byte on.
struct TokenRest {
  int32_t token;
  uint32_t begin;
};

// A tree in the arrays of TextTrees, which may move when another tree is added.
class TextTree {
 public:
  TextTree(const TextNode* nodes, uint32_t node_count, const int32_t* tokens, uint32_t max_depth)
      : nodes_(nodes), tokens_(tokens), node_count_(node_count), max_depth_(max_depth) {}

  uint32_t node_count() const { return node_count_; }
  const TextNode& node(uint32_t i) const { return nodes_[i]; }
  Span<const int32_t> TokensOf(uint32_t node) const { return Tokens(node, node + 1); }
  // Of all that lie below `node`.
  Span<const int32_t> TokensBelow(uint32_t node) const { return Tokens(node + 1, nodes_[node].behind); }
  // Of `node` and of all that lie below it.
  Span<const int32_t> TokensFrom(uint32_t node) const { return Tokens(node, nodes_[node].behind); }
  uint32_t max_depth() const { return max_depth_; }

 private:
  Span<const int32_t> Tokens(uint32_t begin, uint32_t end) const {
    return {tokens_ + nodes_[begin].first_token, nodes_[end].first_token - nodes_[begin].first_token};
  }

  const TextNode* nodes_;  // and one behind the last
  const int32_t* tokens_;  // by their texts
  uint32_t node_count_, max_depth_;
};

class TextTrees {
 public:
  explicit TextTrees(const Allocator& allocator)
      : allocator_(allocator), nodes_(allocator), tokens_(allocator), places_(allocator) {}

  // Adds a tree, of all texts that are not empty. Errors: TARN_OUT_OF_MEMORY.
  Status AddAll(const TokenTexts& texts);
  // Adds a tree of `rests`, which are not empty and are sorted here. Errors: as AddAll().
  Status Add(const TokenTexts& texts, Array<TokenRest>* rests);
  void DropLast();

  size_t size() const { return places_.size(); }
  TextTree Of(uint32_t tree) const {
    const Place& place = places_[tree];
    return {nodes_.data() + place.node, place.node_count, tokens_.data() + place.token, place.max_depth};
  }
  uint64_t used_bytes() const { return nodes_.size() * sizeof(TextNode) + tokens_.size() * sizeof(int32_t); }
  uint64_t bytes() const { return nodes_.bytes() + tokens_.bytes() + places_.bytes(); }

 private:
  struct Place {
    uint32_t node, token;  // the first ones
    uint32_t node_count, max_depth;
  };

  Status AddNodes(const TokenTexts& texts, Span<const TokenRest> rests, Place* place);

  Allocator allocator_;
  Array<TextNode> nodes_;
  Array<int32_t> tokens_;
  Array<Place> places_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_TEXT_TREE_H_
