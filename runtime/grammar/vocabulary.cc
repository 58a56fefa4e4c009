#include "runtime/grammar/vocabulary.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/tokenizer.h"

namespace tarn {
namespace {

size_t SharedBytes(Span<const uint8_t> a, Span<const uint8_t> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < most && a[shared] == b[shared]) ++shared;
  return shared;
}

bool ComesBefore(Span<const uint8_t> a, Span<const uint8_t> b) {
  const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return order < 0 || (order == 0 && a.size() < b.size());
}

}  // namespace

Span<const uint8_t> TokenTexts::Of(int32_t token) const {
  const size_t bytes = token == end_token_ ? 0 : TokenBytes(tables_, token);
  if (bytes == 0) return {};
  if (tables_.kind == TokenizerKind::kBytes) return {&bytes_[token], 1};
  if ((tables_.special[static_cast<size_t>(token)] & kNoPiece) != 0) return {};
  return tables_.Piece(static_cast<uint32_t>(token));
}

Status Vocabulary::Build(const TokenTexts& texts, uint32_t vocab_size, const Allocator& allocator) {
  for (uint32_t token = 0; token < vocab_size; ++token) {
    if (!texts.Of(static_cast<int32_t>(token)).empty()) TARN_GROW_OR_RETURN(tokens_.Push(static_cast<int32_t>(token)));
  }
  std::sort(tokens_.begin(), tokens_.end(), [&](int32_t a, int32_t b) {
    const Span<const uint8_t> text_a = texts.Of(a), text_b = texts.Of(b);
    return ComesBefore(text_a, text_b) || (!ComesBefore(text_b, text_a) && a < b);
  });
  Array<uint32_t> open(allocator);  // the nodes of the text before, one for each byte
  Span<const uint8_t> before;
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    const Span<const uint8_t> text = texts.Of(tokens_[i]);
    const size_t shared = SharedBytes(before, text);
    for (; open.size() > shared; open.Truncate(open.size() - 1)) nodes_[open.back()].behind = static_cast<uint32_t>(nodes_.size());
    for (size_t at = shared; at < text.size(); ++at) {
      TARN_GROW_OR_RETURN(open.Push(static_cast<uint32_t>(nodes_.size())));
      // Tokens of a text come before those of longer ones that begin with it, so that a node on the way has none.
      TARN_GROW_OR_RETURN(nodes_.Push({0, i, static_cast<uint16_t>(at + 1), text[at], 0}));
    }
    max_depth_ = std::max(max_depth_, static_cast<uint32_t>(text.size()));
    before = text;
  }
  for (const uint32_t node : open) nodes_[node].behind = static_cast<uint32_t>(nodes_.size());
  TARN_GROW_OR_RETURN(nodes_.Push({0, static_cast<uint32_t>(tokens_.size()), 0, 0, 0}));
  FindHeights();
  return Ok();
}

// What lies below a node has higher numbers.
void Vocabulary::FindHeights() {
  for (uint32_t i = node_count(); i-- > 0;) {
    uint8_t height = 0;
    for (uint32_t below = i + 1; below < nodes_[i].behind; below = nodes_[below].behind) {
      height = std::max<uint8_t>(height, static_cast<uint8_t>(std::min(nodes_[below].height + 1, 255)));
    }
    nodes_[i].height = height;
  }
}

}  // namespace tarn
