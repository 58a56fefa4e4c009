#include "runtime/text/word_splitter.h"

#include <cstring>

#include "runtime/text/word_cutter.h"

namespace tarn {
namespace {

bool BeginsWith(Span<const char> text, Span<const char> what) {
  return text.size() >= what.size() && std::memcmp(text.data(), what.data(), what.size()) == 0;
}

}  // namespace

TextRange WordSplitter::WithPrefix(uint32_t level, TextRange piece) {
  if (!tables_->prefix_space || level != tables_->prefix_level) return piece;
  const Span<const char> text = View(piece);
  const bool has_space = text[0] == ' ' || (!tables_->space.empty() && BeginsWith(text, tables_->space));
  if (has_space || (tables_->prefix_first && window_->Origin(piece.begin, piece.begin + 1).begin != 0)) return piece;
  window_->PutSpaceBefore(piece.begin);
  return {piece.begin - 1, piece.end};
}

void WordSplitter::Open(uint32_t level, TextRange range, bool is_whole) {
  const SplitTables& split = tables_->splits[level];
  levels_[level].splitter = Splitter(split.pattern, split.behavior, split.invert, View(range), is_whole, split.by_bytes);
  levels_[level].begin = range.begin;
  open_ = level + 1;
}

void WordSplitter::Begin(const TokenizerTables& tables, TextWindow* window, TextRange text, bool is_whole) {
  tables_ = &tables;
  window_ = window;
  text_ = WithPrefix(0, text);
  is_whole_ = is_whole;
  open_ = 0;
  rest_ = tables.split_count > 0 ? TextRange{0, 0} : text_;
  is_cut_ = false;
  if (tables.split_count > 0) Open(0, text_, is_whole);
}

ScanStatus WordSplitter::Next(TextRange* word) {
  const bool is_whole = is_whole_ || tables_->split_count > 0;
  if (rest_.begin == rest_.end) {
    const ScanStatus status = tables_->split_count > 0 ? NextSplit(&rest_) : is_whole ? ScanStatus::kEnd : ScanStatus::kMore;
    if (status != ScanStatus::kFound) return status;
  }
  const size_t bytes = FirstPart(*tables_, View(rest_), is_whole);
  if (bytes == 0) return ScanStatus::kMore;
  *word = {rest_.begin, rest_.begin + bytes};
  rest_.begin = word->end;
  continues_ = is_cut_;
  is_cut_ = rest_.begin < rest_.end;
  return ScanStatus::kFound;
}

ScanStatus WordSplitter::NextSplit(TextRange* word) {
  while (open_ > 0) {
    Level& level = levels_[open_ - 1];
    TextRange piece = {};
    const ScanStatus status = level.splitter.Next(&piece);
    if (status == ScanStatus::kMore) return status;  // of the first level alone: the others have whole pieces
    if (status == ScanStatus::kEnd) {
      --open_;
      continue;
    }
    const TextRange found = WithPrefix(open_, {level.begin + piece.begin, level.begin + piece.end});
    if (open_ < tables_->split_count) {
      Open(open_, found, true);
      continue;
    }
    *word = found;
    return ScanStatus::kFound;
  }
  return ScanStatus::kEnd;
}

void WordSplitter::Continue(TextRange text, bool is_whole) {
  if (tables_->split_count > 0) {
    levels_[0].splitter.Continue(View(text), levels_[0].splitter.needed(), is_whole);
    levels_[0].begin = text.begin;
  }
  text_ = text;
  is_whole_ = is_whole;
  if (tables_->split_count == 0) rest_ = text;
}

}  // namespace tarn
