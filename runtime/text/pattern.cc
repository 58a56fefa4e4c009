#include "runtime/text/pattern.h"

#include "runtime/text/pattern_format.h"

namespace tarn {
namespace {

constexpr uint32_t kMatched = 1;     // bit of an entry
constexpr size_t kFutileBytes = 64;  // that may be scanned for nothing without a note

const uint8_t* Bytes(const char* text) { return reinterpret_cast<const uint8_t*>(text); }

Status CheckTables(Span<const uint16_t> roots, Span<const uint8_t> classes, Span<const uint16_t> transitions, uint32_t leaves,
                   uint32_t stride) {
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i] >= leaves) return Error(TARN_BAD_FORMAT, "pattern: root %zu is leaf %u of %u", i, roots[i], leaves);
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == 0 || classes[i] >= stride) {
      return Error(TARN_BAD_FORMAT, "pattern: class %zu of the leaves is %u, must be in [1, %u)", i, classes[i], stride);
    }
  }
  for (size_t i = 0; i < transitions.size(); ++i) {
    const uint32_t target = transitions[i] / 2u;
    if (target % stride != 0 || target >= transitions.size() || (i < stride && transitions[i] != 0)) {
      return Error(TARN_BAD_FORMAT, "pattern: entry %zu of the transitions is %u, which is no state of it", i, transitions[i]);
    }
  }
  return Ok();
}

}  // namespace

Result<Pattern> Pattern::Open(Span<const uint16_t> words) {
  if (words.size() < kPatternHeaderWords) {
    return Error(TARN_BAD_FORMAT, "pattern: it has %zu words, a header has %zu", words.size(), kPatternHeaderWords);
  }
  if (words[0] != kPatternVersion) {
    return Error(TARN_UNSUPPORTED, "pattern: its layout has version %u, this library reads version %u", words[0], kPatternVersion);
  }
  const uint32_t stride = words[1], states = words[2], leaves = words[3];
  const size_t leaf_words = leaves * kPatternLeaf / 2, entries = size_t{stride} * states;
  if (stride < 2 || stride > kMaxPatternStride || states < 2 || entries > kMaxPatternEntries || leaves == 0 ||
      leaves > kPatternRoots) {
    return Error(TARN_BAD_FORMAT, "pattern: %u classes, %u states and %u leaves are beyond what it may have", stride, states,
                 leaves);
  }
  const size_t expected = kPatternHeaderWords + kPatternRoots + leaf_words + entries;
  if (words.size() != expected) {
    return Error(TARN_BAD_FORMAT, "pattern: it has %zu words, its header says %zu", words.size(), expected);
  }
  const Span<const uint16_t> roots = words.subspan(kPatternHeaderWords, kPatternRoots);
  const Span<const uint8_t> classes(reinterpret_cast<const uint8_t*>(roots.end()), leaf_words * 2);
  const Span<const uint16_t> transitions(roots.end() + leaf_words, entries);
  TARN_RETURN_IF_ERROR(CheckTables(roots, classes, transitions, leaves, stride));
  if (roots[0] != 0) return Error(TARN_BAD_FORMAT, "pattern: root 0 is leaf %u, must be leaf 0", roots[0]);
  Pattern pattern;
  pattern.roots_ = roots.data();
  pattern.leaves_ = classes.data();
  pattern.transitions_ = transitions.data();
  pattern.start_ = stride;
  return pattern;
}

Pattern::Move Pattern::Over(uint32_t state, uint32_t code) const {
  const uint32_t read = code / kPatternLeaf < kPatternRoots ? code : kReplacementCode;
  const uint16_t entry = transitions_[state + leaves_[roots_[read / kPatternLeaf] * kPatternLeaf + read % kPatternLeaf]];
  return {entry / 2u, (entry & kMatched) != 0};
}

CodePoint PatternScanner::Decode(const uint8_t* at, const uint8_t* end) const {
  return by_bytes_ ? CodePoint{*at, 1, true, false} : DecodeCodePoint(at, end);
}

// With `kAvoids`, ends where it would repeat what futile_ says.
template <bool kAvoids>
ScanStatus PatternScanner::MatchAt(size_t begin, size_t* match_end, size_t* scanned_end) const {
  const uint8_t* const first = Bytes(text_.data());
  const uint8_t* const end = first + text_.size();
  const uint8_t* const leaves = pattern_.leaves_;
  const uint16_t* const transitions = pattern_.transitions_;
  const uint8_t* at = first + begin;
  const uint8_t* matched = nullptr;
  uint32_t state = pattern_.start_;
  while (at != end) {
    uint32_t of, bytes = 1;
    if (*at < 0x80) {
      of = leaves[*at];
    } else {
      const CodePoint character = Decode(at, end);
      if (character.is_cut && !is_whole_) return ScanStatus::kMore;
      of = leaves[pattern_.roots_[character.code / kPatternLeaf] * kPatternLeaf + character.code % kPatternLeaf];
      bytes = character.bytes;
    }
    const uint32_t entry = transitions[state + of];
    if ((entry & kMatched) != 0) matched = at;
    state = entry / 2;
    if (state == 0) break;
    at += bytes;
    if (kAvoids && state == futile_.state) {
      const size_t position = static_cast<size_t>(at - first);
      if (position >= futile_.begin && position <= futile_.end) {
        state = 0;
        break;
      }
    }
  }
  if (state != 0) {
    if (!is_whole_) return ScanStatus::kMore;
    if ((transitions[state] & kMatched) != 0) matched = end;
  }
  *scanned_end = static_cast<size_t>(at - first);
  if (matched == nullptr) return ScanStatus::kEnd;
  *match_end = static_cast<size_t>(matched - first);
  return ScanStatus::kFound;
}

// After a search from `begin` went in vain from `useful_end` to `scanned_end`: finds in what state it was for the last part of
// that. The same state at the same place leads to the same end.
void PatternScanner::NoteFutile(size_t begin, size_t useful_end, size_t scanned_end) {
  const uint8_t* const first = Bytes(text_.data());
  uint32_t state = pattern_.start_;
  futile_ = {};
  for (size_t at = begin; at < scanned_end;) {
    const CodePoint character = Decode(first + at, first + text_.size());
    const size_t root = pattern_.roots_[character.code / kPatternLeaf];
    state = pattern_.transitions_[state + pattern_.leaves_[root * kPatternLeaf + character.code % kPatternLeaf]] / 2;
    at += character.bytes;
    if (at <= useful_end) continue;
    if (state != futile_.state) futile_ = {state, at, at};
    futile_.end = at;
  }
}

ScanStatus PatternScanner::Next(TextRange* match) {
  while (position_ <= text_.size()) {
    if (position_ == text_.size() && !is_whole_) return ScanStatus::kMore;
    size_t end = position_, scanned_end = 0;
    const bool avoids = position_ < futile_.end;
    const ScanStatus status = avoids ? MatchAt<true>(position_, &end, &scanned_end) : MatchAt<false>(position_, &end, &scanned_end);
    if (status == ScanStatus::kMore) return status;
    if (scanned_end > end + kFutileBytes) NoteFutile(position_, end, scanned_end);
    if (status == ScanStatus::kFound && !(end == position_ && end == last_end_)) {
      *match = {position_, end};
      position_ = last_end_ = end;
      return ScanStatus::kFound;
    }
    if (position_ == text_.size()) {
      ++position_;  // past the end: there are no more
      break;
    }
    const uint8_t* const first = Bytes(text_.data());
    const CodePoint character = Decode(first + position_, first + text_.size());
    if (character.is_cut && !is_whole_) return ScanStatus::kMore;
    position_ += character.bytes;
  }
  return ScanStatus::kEnd;
}

void PatternScanner::Continue(Span<const char> text, size_t dropped, bool is_whole) {
  text_ = text;
  is_whole_ = is_whole;
  position_ -= dropped;
  futile_ = {};
  last_end_ = last_end_ != kNoMatch && last_end_ >= dropped ? last_end_ - dropped : kNoMatch;
}

}  // namespace tarn
