#include "runtime/text/edge_spaces.h"

#include <algorithm>
#include <cstring>

#include "runtime/text/spaces.h"

namespace tarn {
namespace {

// Of the space that `text` begins with; 0: it begins with none.
size_t SpaceOrLetterBytes(Span<const char> text) {
  const size_t bytes = SpaceBytes(text);
  return bytes == 0 && text.size() >= 2 && std::memcmp(text.data(), "\xC4\xA0", 2) == 0 ? 2 : bytes;
}

size_t CountLeading(Span<const char> text) {
  size_t count = 0;
  for (; const size_t bytes = SpaceOrLetterBytes(text); ++count) text = text.subspan(bytes, text.size() - bytes);
  return count;
}

size_t CountTrailing(Span<const char> text) {
  size_t count = 0;
  for (; !text.empty(); ++count) {
    const size_t begin = CharacterBegin(text, text.size() - 1);
    const size_t bytes = SpaceOrLetterBytes(text.subspan(begin, text.size() - begin));
    if (bytes == 0 || begin + bytes != text.size()) break;
    text = text.subspan(0, begin);
  }
  return count;
}

}  // namespace

EdgeSpaces EdgeSpacesOfText(Span<const char> text) { return {CountLeading(text), CountTrailing(text)}; }

EdgeSpaces EdgeSpacesOfToken(const TokenizerTables& tables, uint32_t id) {
  if (!tables.edge_spaces.empty()) return {tables.edge_spaces[id] & 0xFFFF, tables.edge_spaces[id] >> 16};
  const Span<const uint8_t> piece = tables.Piece(id);
  const auto is_letter = [](uint8_t byte) { return byte != ' '; };  // the alphabet has other letters for other spaces
  const auto first = std::find_if(piece.begin(), piece.end(), is_letter);
  size_t trailing = 0;
  while (trailing < piece.size() && !is_letter(piece[piece.size() - 1 - trailing])) ++trailing;
  return {static_cast<size_t>(first - piece.begin()), trailing};
}

TextRange TrimRange(Span<const char> text, TextRange range, const EdgeSpaces& spaces) {
  for (size_t i = 0; i < spaces.leading && range.begin < range.end; ++i) {
    range.begin = std::min(CharacterEnd(text, range.begin), range.end);
  }
  size_t end = range.end;
  for (size_t i = 0; i < spaces.trailing; ++i) {
    if (end == 0) return range;  // it has fewer characters before it: the package leaves it alone
    end = CharacterBegin(text, end - 1);
  }
  range.end = std::max(end, range.begin);
  return range;
}

}  // namespace tarn
