#include "tools/tarn/line_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tools/common/printable.h"

namespace tarn_cli {
namespace {

bool GoesOn(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The bytes of the character that `text` begins with; 1 where it begins with none.
size_t CharacterBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
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

// Columns of a character as terminals have it, by blocks of Unicode: marks take none, East Asian characters and pictures two.
size_t Width(std::string_view character) {
  struct Block {
    uint32_t first, last;
    size_t width;
  };
  static constexpr Block kBlocks[] = {{0x0300, 0x036F, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05BD, 0},   {0x064B, 0x065F, 0},
                                      {0x1100, 0x115F, 2},   {0x1AB0, 0x1AFF, 0},   {0x1DC0, 0x1DFF, 0},   {0x20D0, 0x20FF, 0},
                                      {0x2E80, 0x303E, 2},   {0x3041, 0xA4CF, 2},   {0xA960, 0xA97F, 2},   {0xAC00, 0xD7A3, 2},
                                      {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},   {0xFE20, 0xFE2F, 0},   {0xFE30, 0xFE6F, 2},
                                      {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},   {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2},
                                      {0x1F900, 0x1F9FF, 2}, {0x20000, 0x3FFFD, 2}, {0xE0100, 0xE01EF, 0}};
  const uint32_t code_point = CodePoint(character);
  for (const Block& block : kBlocks) {
    if (code_point >= block.first && code_point <= block.last) return block.width;
  }
  return 1;
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
