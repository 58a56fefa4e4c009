#include "tools/tarn/line_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tools/common/printable.h"
#include "tools/tarn/column_data.h"

namespace tarn_cli {
namespace {

bool GoesOn(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The bytes of the character that `text` begins with; 1 where it begins with none.
size_t CharacterBytes(std::string_view text) {
  const size_t length = CharacterLength(text[0]);
  if (length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i) {
    if (!GoesOn(text[i])) return 1;
  }
  return length;
}

uint32_t CodePoint(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  uint32_t value = character.size() == 1 ? lead : lead & (0x7Fu >> character.size());
  for (const char byte : character.substr(1)) value = value << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  return value;
}

// Columns of a character as terminals have it: marks take none, East Asian characters and emoji two.
size_t Width(std::string_view character) {
  constexpr uint32_t kMostColumns = 3;  // in two bits
  const uint32_t* const next =
      std::upper_bound(kColumnRuns, kColumnRuns + kColumnRunCount, CodePoint(character) * 4 | kMostColumns);
  return *(next - 1) & kMostColumns;
}

// What is shown in place of a character.
struct Glyph {
  std::string_view text;
  size_t width;
};

Glyph GlyphOf(std::string_view character) {
  if (character == "\n") return {"\xE2\x86\xB5", 1};
  if (character == "\t") return {" ", 1};
  if (tarn::tools::VisibleCharacter(character) == 0) return {"\xEF\xBF\xBD", 1};
  return {character, Width(character)};
}

}  // namespace

size_t CharacterLength(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void LineText::Set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
  shown_ = 0;
}

void LineText::Insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void LineText::EraseBefore() { Erase(Before(cursor_), cursor_); }

void LineText::EraseAfter() { Erase(cursor_, After(cursor_)); }

void LineText::EraseWordBefore() {
  size_t begin = cursor_;
  const auto is_space = [this](size_t at) { return text_[at] == ' ' || text_[at] == '\n' || text_[at] == '\t'; };
  while (begin > 0 && is_space(begin - 1)) --begin;
  while (begin > 0 && !is_space(begin - 1)) --begin;
  Erase(begin, cursor_);
}

void LineText::Erase(size_t begin, size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

size_t LineText::Before(size_t at) const {
  if (at == 0) return 0;
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && GoesOn(text_[begin])) --begin;
  return After(begin) == at ? begin : at - 1;
}

size_t LineText::After(size_t at) const {
  return at == text_.size() ? at : at + CharacterBytes(std::string_view(text_).substr(at));
}

size_t LineText::Columns(size_t begin, size_t end) const {
  size_t columns = 0;
  for (size_t at = begin; at < end; at = After(at)) columns += GlyphOf(std::string_view(text_).substr(at, After(at) - at)).width;
  return columns;
}

LineText::Shown LineText::Show(size_t columns) {
  shown_ = std::min(shown_, cursor_);
  // The cursor has a column too. Where it would leave the row, it comes to stand in the middle.
  if (Columns(shown_, cursor_) + 1 > columns) {
    for (shown_ = cursor_; shown_ > 0 && Columns(Before(shown_), cursor_) <= columns / 2;) shown_ = Before(shown_);
  }
  // Where the row has room behind the text, there is room for what stands before the part.
  const auto fits = [&](size_t begin) {
    constexpr size_t kMostBytes = 4;  // of a column, but for marks
    return text_.size() - begin <= kMostBytes * columns && Columns(begin, text_.size()) + 1 <= columns;
  };
  while (shown_ > 0 && fits(Before(shown_))) shown_ = Before(shown_);
  Shown shown;
  for (size_t at = shown_; at < text_.size(); at = After(at)) {
    const Glyph glyph = GlyphOf(std::string_view(text_).substr(at, After(at) - at));
    if (shown.columns + glyph.width > columns - 1) break;
    if (at < cursor_) shown.cursor_column += glyph.width;
    shown.columns += glyph.width;
    shown.text += glyph.text;
  }
  return shown;
}

}  // namespace tarn_cli
