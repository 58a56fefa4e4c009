#include "runtime/text/pattern_split.h"

namespace tarn {

ScanStatus Splitter::NextPart(Part* part) {
  if (!has_match_ && !is_scanned_) {
    const ScanStatus status = scanner_.Next(&match_);
    if (status == ScanStatus::kMore) return status;
    has_match_ = status == ScanStatus::kFound;
    is_scanned_ = !has_match_;
  }
  const size_t gap_end = has_match_ ? match_.begin : text_bytes_;
  if (part_end_ < gap_end) {
    *part = {{part_end_, gap_end}, invert_};
  } else if (has_match_) {
    *part = {match_, !invert_};
    has_match_ = false;
  } else {
    return ScanStatus::kEnd;
  }
  part_end_ = part->range.end;
  return ScanStatus::kFound;
}

// Whether the part behind current_ can belong to its piece.
bool Splitter::MayGrow() const {
  switch (behavior_) {
    case SplitBehavior::kMergedWithPrevious:
      return !current_.is_match;
    case SplitBehavior::kMergedWithNext:
      return current_.is_match;
    case SplitBehavior::kContiguous:
      return true;
    default:
      return false;
  }
}

bool Splitter::Takes(const Part& next) const {
  return behavior_ == SplitBehavior::kContiguous ? next.is_match == current_.is_match : next.is_match != current_.is_match;
}

ScanStatus Splitter::NextMerged(TextRange* piece) {
  if (!has_current_) {
    const ScanStatus status = NextPart(&current_);
    if (status != ScanStatus::kFound) return status;
    has_current_ = true;
  }
  while (MayGrow()) {
    Part next;
    const ScanStatus status = NextPart(&next);
    if (status == ScanStatus::kMore) return status;
    if (status == ScanStatus::kEnd) break;
    if (!Takes(next)) {
      *piece = current_.range;
      current_ = next;
      return ScanStatus::kFound;
    }
    current_.range.end = next.range.end;
    if (behavior_ != SplitBehavior::kContiguous) break;
  }
  *piece = current_.range;
  has_current_ = false;
  return ScanStatus::kFound;
}

ScanStatus Splitter::Next(TextRange* piece) {
  for (;;) {
    Part part = {};
    const bool merges = behavior_ != SplitBehavior::kIsolated && behavior_ != SplitBehavior::kRemoved;
    const ScanStatus status = merges ? NextMerged(&part.range) : NextPart(&part);
    if (status != ScanStatus::kFound) return status;
    const bool is_removed = behavior_ == SplitBehavior::kRemoved && part.is_match;
    if (part.range.begin == part.range.end || is_removed) continue;
    *piece = part.range;
    return status;
  }
}

void Splitter::Continue(Span<const char> text, size_t dropped, bool is_whole) {
  scanner_.Continue(text, dropped, is_whole);
  text_bytes_ = text.size();
  part_end_ -= dropped;
  match_ = {match_.begin - dropped, match_.end - dropped};
  current_.range = {current_.range.begin - dropped, current_.range.end - dropped};
}

size_t Splitter::needed() const { return has_current_ ? current_.range.begin : part_end_; }

}  // namespace tarn
