// The texts of all tokens as a tree of bytes, in the order of a walk over it.
#ifndef TARN_RUNTIME_GRAMMAR_VOCABULARY_H_
#define TARN_RUNTIME_GRAMMAR_VOCABULARY_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/grammar/array.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

struct TextNode {
  uint32_t behind;       // the first node that is not below this one
  uint32_t first_token;  // in tokens(); the tokens of this text end where those of the next node begin
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

 private:
  const TokenizerTables& tables_;
  int32_t end_token_;
  uint8_t bytes_[kByteTokens];
};

class Vocabulary {
 public:
  explicit Vocabulary(const Allocator& allocator) : nodes_(allocator), tokens_(allocator) {}

  // Of the tokens that have a text. Errors: TARN_OUT_OF_MEMORY.
  Status Build(const TokenTexts& texts, uint32_t vocab_size, const Allocator& allocator);

  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  const TextNode& node(uint32_t i) const { return nodes_[i]; }
  Span<const int32_t> TokensOf(uint32_t node) const {
    return {tokens_.data() + nodes_[node].first_token, nodes_[node + 1].first_token - nodes_[node].first_token};
  }
  // Of all that lie below `node`.
  Span<const int32_t> TokensBelow(uint32_t node) const {
    const uint32_t begin = nodes_[node + 1].first_token;
    return {tokens_.data() + begin, nodes_[nodes_[node].behind].first_token - begin};
  }
  uint32_t max_depth() const { return max_depth_; }
  uint64_t bytes() const { return nodes_.bytes() + tokens_.bytes(); }

 private:
  void FindHeights();

  Array<TextNode> nodes_;  // and one behind the last
  Array<int32_t> tokens_;  // by their texts
  uint32_t max_depth_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GRAMMAR_VOCABULARY_H_
