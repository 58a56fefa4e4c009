#include "runtime/text/word_splitter.h"

namespace tarn {

void WordSplitter::Open(uint32_t level, TextRange range, bool is_whole) {
  const SplitTables& split = tables_->splits[level];
  levels_[level].splitter =
      Splitter(split.pattern, split.behavior, split.invert, text_.subspan(range.begin, range.end - range.begin), is_whole);
  levels_[level].begin = range.begin;
  open_ = level + 1;
}

void WordSplitter::Begin(const TokenizerTables& tables, Span<const char> text, bool is_whole) {
  tables_ = &tables;
  text_ = text;
  is_whole_ = is_whole;
  open_ = 0;
  if (tables.split_count > 0) Open(0, {0, text.size()}, is_whole);
}

ScanStatus WordSplitter::Next(TextRange* word) {
  if (tables_->split_count == 0) {
    if (!is_whole_) return ScanStatus::kMore;
    *word = {0, text_.size()};
    text_ = {};
    return word->end == 0 ? ScanStatus::kEnd : ScanStatus::kFound;
  }
  while (open_ > 0) {
    Level& level = levels_[open_ - 1];
    TextRange piece = {};
    const ScanStatus status = level.splitter.Next(&piece);
    if (status == ScanStatus::kMore) return status;  // of the first level alone: the others have whole pieces
    if (status == ScanStatus::kEnd) {
      --open_;
      continue;
    }
    const TextRange found = {level.begin + piece.begin, level.begin + piece.end};
    if (open_ < tables_->split_count) {
      Open(open_, found, true);
      continue;
    }
    *word = found;
    return ScanStatus::kFound;
  }
  return ScanStatus::kEnd;
}

void WordSplitter::Continue(Span<const char> text, size_t dropped, bool is_whole) {
  text_ = text;
  is_whole_ = is_whole;
  if (tables_->split_count > 0) levels_[0].splitter.Continue(text, dropped, is_whole);
}

}  // namespace tarn
