// Cuts a text into words: a list of splits, each of which cuts the pieces of the one before it.
#ifndef TARN_RUNTIME_TEXT_WORD_SPLITTER_H_
#define TARN_RUNTIME_TEXT_WORD_SPLITTER_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "runtime/text/pattern.h"
#include "runtime/text/pattern_split.h"
#include "runtime/text/tokenizer_tables.h"

namespace tarn {

class WordSplitter {
 public:
  // `tables` and the text outlive its use.
  void Begin(const TokenizerTables& tables, Span<const char> text, bool is_whole);
  // The next word, never an empty one. Without splits the text is a word.
  ScanStatus Next(TextRange* word);
  // After kMore, as PatternScanner's.
  void Continue(Span<const char> text, size_t dropped, bool is_whole);
  size_t needed() const { return tables_->split_count == 0 ? 0 : levels_[0].splitter.needed(); }

 private:
  struct Level {
    Splitter splitter;
    size_t begin;  // of its text
  };
  void Open(uint32_t level, TextRange range, bool is_whole);

  const TokenizerTables* tables_ = nullptr;
  Span<const char> text_;
  bool is_whole_ = true;
  Level levels_[kMaxSplits] = {};
  uint32_t open_ = 0;  // levels that have more to give
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_WORD_SPLITTER_H_
