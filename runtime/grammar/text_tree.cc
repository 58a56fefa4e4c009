#include "runtime/grammar/text_tree.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/tokenizer.h"

namespace tarn {
namespace {

Span<const uint8_t> TextOf(const TokenTexts& texts, const TokenRest& rest) {
  const Span<const uint8_t> text = texts.Of(rest.token);
  return {text.data() + rest.begin, text.size() - rest.begin};
}

size_t SharedBytes(Span<const uint8_t> a, Span<const uint8_t> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < most && a[shared] == b[shared]) ++shared;
  return shared;
}

// Below, equal or above 0: `a` comes before `b`, is equal, comes behind it.
int Order(Span<const uint8_t> a, Span<const uint8_t> b) {
  const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  if (order != 0 || a.size() == b.size()) return order;
  return a.size() < b.size() ? -1 : 1;
}

// What lies below a node has higher numbers.
void FindHeights(Span<TextNode> nodes) {
  for (size_t i = nodes.size(); i-- > 0;) {
    uint8_t height = 0;
    for (uint32_t below = static_cast<uint32_t>(i) + 1; below < nodes[i].behind; below = nodes[below].behind) {
      height = std::max<uint8_t>(height, static_cast<uint8_t>(std::min(nodes[below].height + 1, 255)));
    }
    nodes[i].height = height;
  }
}

}  // namespace

Span<const uint8_t> TokenTexts::Of(int32_t token) const {
  const size_t bytes = token == end_token_ ? 0 : TokenBytes(tables_, token);
  if (bytes == 0) return {};
  if (tables_.kind == TokenizerKind::kBytes) return {&bytes_[token], 1};
  if ((tables_.special[static_cast<size_t>(token)] & kNoPiece) != 0) return {};
  return tables_.Piece(static_cast<uint32_t>(token));
}

Status TextTrees::AddAll(const TokenTexts& texts) {
  Array<TokenRest> all(allocator_);
  for (uint32_t i = 0; i < texts.vocab_size(); ++i) {
    const auto token = static_cast<int32_t>(i);
    if (!texts.Of(token).empty()) TARN_GROW_OR_RETURN(all.Push({token, 0}));
  }
  return Add(texts, &all);
}

Status TextTrees::Add(const TokenTexts& texts, Array<TokenRest>* rests) {
  std::sort(rests->begin(), rests->end(), [&](const TokenRest& a, const TokenRest& b) {
    const int order = Order(TextOf(texts, a), TextOf(texts, b));
    return order < 0 || (order == 0 && a.token < b.token);
  });
  Place place = {static_cast<uint32_t>(nodes_.size()), static_cast<uint32_t>(tokens_.size()), 0, 0};
  TARN_RETURN_IF_ERROR(AddNodes(texts, rests->span(), &place));
  for (const TokenRest& rest : *rests) TARN_GROW_OR_RETURN(tokens_.Push(rest.token));
  TARN_GROW_OR_RETURN(places_.Push(place));
  return Ok();
}

Status TextTrees::AddNodes(const TokenTexts& texts, Span<const TokenRest> rests, Place* place) {
  Array<uint32_t> open(allocator_);  // the nodes of the text before, one for each byte
  Span<const uint8_t> before;
  const auto count = [&] { return static_cast<uint32_t>(nodes_.size()) - place->node; };
  for (uint32_t i = 0; i < rests.size(); ++i) {
    const Span<const uint8_t> text = TextOf(texts, rests[i]);
    const size_t shared = SharedBytes(before, text);
    for (; open.size() > shared; open.Truncate(open.size() - 1)) nodes_[place->node + open.back()].behind = count();
    for (size_t at = shared; at < text.size(); ++at) {
      TARN_GROW_OR_RETURN(open.Push(count()));
      // Tokens of a text come before those of longer ones that begin with it, so that a node on the way has none.
      TARN_GROW_OR_RETURN(nodes_.Push({0, i, static_cast<uint16_t>(at + 1), text[at], 0}));
    }
    place->max_depth = std::max(place->max_depth, static_cast<uint32_t>(text.size()));
    before = text;
  }
  for (const uint32_t node : open) nodes_[place->node + node].behind = count();
  place->node_count = count();
  TARN_GROW_OR_RETURN(nodes_.Push({0, static_cast<uint32_t>(rests.size()), 0, 0, 0}));
  FindHeights({nodes_.data() + place->node, place->node_count});
  return Ok();
}

void TextTrees::DropLast() {
  nodes_.Truncate(places_.back().node);
  tokens_.Truncate(places_.back().token);
  places_.Truncate(places_.size() - 1);
}

}  // namespace tarn
