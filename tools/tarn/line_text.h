// The line that is edited: a text, a cursor in it, and the part of it that a row of a terminal shows.
#ifndef TARN_TOOLS_TARN_LINE_TEXT_H_
#define TARN_TOOLS_TARN_LINE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tarn_cli {

// The bytes of a character of UTF-8 that begins with `lead`; 1 if none does.
size_t CharacterLength(char lead);

// The cursor moves by characters of UTF-8; a byte that belongs to none is one of its own.
class LineText {
 public:
  const std::string& text() const { return text_; }
  void Set(std::string text);  // cursor at its end

  void Insert(std::string_view text);  // before the cursor
  void MoveLeft() { cursor_ = Before(cursor_); }
  void MoveRight() { cursor_ = After(cursor_); }
  void MoveToBegin() { cursor_ = 0; }
  void MoveToEnd() { cursor_ = text_.size(); }
  void EraseBefore();      // the character
  void EraseAfter();       // the character
  void EraseWordBefore();  // with the spaces behind it
  void EraseAllBefore() { Erase(0, cursor_); }
  void EraseAllAfter() { Erase(cursor_, text_.size()); }

  // What `columns` of a terminal show, at least 1: a part of the text with the cursor in it. Control characters and bytes that are
  // no UTF-8 are shown as one column; line breaks as an arrow.
  struct Shown {
    std::string text;
    size_t columns = 0;
    size_t cursor_column = 0;
  };
  Shown Show(size_t columns);

 private:
  size_t Before(size_t at) const;  // where the character before `at` begins
  size_t After(size_t at) const;   // where the one at `at` ends
  void Erase(size_t begin, size_t end);
  size_t Columns(size_t begin, size_t end) const;

  std::string text_;
  size_t cursor_ = 0;  // in bytes
  size_t shown_ = 0;   // where the part that is shown begins
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_LINE_TEXT_H_
