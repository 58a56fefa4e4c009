// Cuts a text into words: a list of splits, each of which cuts the pieces of the one before it. Between two of them, pieces that do
// not begin with a space may get one.
#ifndef TARN_RUNTIME_TEXT_WORD_SPLITTER_H_
#define TARN_RUNTIME_TEXT_WORD_SPLITTER_H_

#include <cstddef>
#include <cstdint>

#include "runtime/text/pattern.h"
#include "runtime/text/pattern_split.h"
#include "runtime/text/text_window.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

class WordSplitter {
 public:
  // Cuts `text`, a range of the window's, not an empty one. `tables` and the window outlive its use. Where a piece gets a space, it
  // takes the byte before it in the window, which belongs to a piece that is done with.
  void Begin(const TokenizerTables& tables, TextWindow* window, TextRange text, bool is_whole);
  // The next word, never an empty one. Without splits the text is a word. Words come in parts where they may be cut.
  ScanStatus Next(TextRange* word);
  // What Next() found is a part of the same word as what it found before.
  bool continues() const { return continues_; }
  // After kMore: the window has more, and what was at needed() is now at the begin of `text`.
  void Continue(TextRange text, bool is_whole);
  size_t needed() const { return tables_->split_count == 0 ? rest_.begin : text_.begin + levels_[0].splitter.needed(); }

 private:
  struct Level {
    Splitter splitter;
    size_t begin;  // of its text
  };
  Span<const char> View(TextRange range) const { return window_->text().subspan(range.begin, range.end - range.begin); }
  void Open(uint32_t level, TextRange range, bool is_whole);
  ScanStatus NextSplit(TextRange* word);
  TextRange WithPrefix(uint32_t level, TextRange piece);

  const TokenizerTables* tables_ = nullptr;
  TextWindow* window_ = nullptr;
  TextRange text_ = {0, 0};
  bool is_whole_ = true;
  Level levels_[kMaxSplits] = {};
  uint32_t open_ = 0;    // levels that have more to give
  TextRange rest_ = {};  // of the word
  bool is_cut_ = false;  // parts of it were found
  bool continues_ = false;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_SPLITTER_H_
