#include "runtime/text/added_tokens.h"

#include <algorithm>

#include "runtime/text/spaces.h"

namespace tarn {

AddedTokenSet::AddedTokenSet(const AddedTables& added, const Trie& trie) : added_(&added), trie_(&trie) {
  if (trie.empty()) return;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (trie.Child(Trie::kRoot, static_cast<uint8_t>(byte)) != Trie::kNone) first_bytes_[byte / 32] |= 1u << byte % 32;
  }
  for (const uint8_t flags : added.flags) {
    takes_spaces_before_ = takes_spaces_before_ || (flags & kTakesSpacesBefore) != 0;
    has_single_words_ = has_single_words_ || (flags & kIsSingleWord) != 0;
  }
}

bool AddedTokenScanner::IsWordAt(size_t at) const {
  TextRange match;
  return PatternScanner(set_->added_->word, text_.subspan(at, CharacterEnd(text_, at) - at)).Next(&match) == ScanStatus::kFound &&
         match.begin == 0;
}

bool AddedTokenScanner::IsWordBefore(size_t at) const {
  return at == known_before_ ? is_word_before_ : IsWordAt(CharacterBegin(text_, at - 1));
}

bool PlainText::Touches(TextRange match) const {
  if (ranges.empty()) return false;
  const TextRange found = window == nullptr ? match : window->Origin(match.begin, match.end);
  const TextRange* range =
      std::partition_point(ranges.begin(), ranges.end(), [&](const TextRange& one) { return one.end <= found.begin; });
  return range != ranges.end() && range->begin < found.end;
}

ScanStatus AddedTokenScanner::Unsure(size_t at) {
  certain_ = at;
  if (set_->has_single_words_) is_word_before_ = IsWordBefore(at);
  known_before_ = at;
  // The next token may take the spaces before it.
  while (set_->takes_spaces_before_ && certain_ > last_end_) {
    const size_t bytes = SpaceBytesAtEnd(text_.subspan(0, certain_));
    if (bytes == 0) break;
    certain_ -= bytes;
  }
  return ScanStatus::kMore;
}

ScanStatus AddedTokenScanner::Match(TextRange* match, int32_t* value) {
  if (set_->trie_->empty()) search_ = text_.size();
  for (size_t begin = search_; begin < text_.size(); ++begin) {
    if (!set_->Begins(static_cast<uint8_t>(text_[begin]))) continue;
    search_ = begin;
    *value = -1;
    uint32_t node = Trie::kRoot;
    size_t at = begin;
    for (; at < text_.size(); ++at) {
      node = set_->trie_->Child(node, static_cast<uint8_t>(text_[at]));
      if (node == Trie::kNone) break;
      if (set_->trie_->value(node) < 0) continue;
      *value = set_->trie_->value(node);
      *match = {begin, at + 1};
    }
    if (at == text_.size() && !is_whole_) return Unsure(begin);
    if (*value >= 0) return ScanStatus::kFound;
  }
  search_ = text_.size();
  if (!is_whole_) return Unsure(search_);
  certain_ = search_;
  return ScanStatus::kEnd;
}

size_t AddedTokenScanner::SpacesEnd(size_t begin) {
  if (begin >= spaces_.begin && begin <= spaces_.end && (is_whole_ || spaces_.end < text_.size())) return spaces_.end;
  size_t end = begin;
  while (const size_t bytes = SpaceBytes(text_.subspan(end, text_.size() - end))) end += bytes;
  spaces_ = {begin, end};
  return end;
}

ScanStatus AddedTokenScanner::Next(FoundToken* token) {
  for (;;) {
    TextRange range = {};
    int32_t value = -1;
    const ScanStatus status = Match(&range, &value);
    if (status != ScanStatus::kFound) return status;
    const uint8_t flags = set_->added_->flags[static_cast<size_t>(value)];
    const size_t match_end = range.end;
    if ((flags & kIsSpecial) != 0 && plain_.Touches(range)) {
      search_ = match_end;
      continue;
    }
    if ((flags & kIsSingleWord) != 0) {
      const bool is_cut = text_.size() - match_end < kMaxCharacterBytes;  // it may be
      if (is_cut && !is_whole_) return Unsure(range.begin);
      if (IsWordBefore(range.begin) || (match_end < text_.size() && IsWordAt(match_end))) {
        search_ = match_end;
        continue;
      }
    }
    if ((flags & kTakesSpacesAfter) != 0) {
      range.end = SpacesEnd(match_end);
      // A space has up to three bytes, the first of which may be all that is there.
      if (!is_whole_ && range.end + kMaxSpaceBytes > text_.size()) return Unsure(range.begin);
    }
    if ((flags & kTakesSpacesBefore) != 0) {
      while (const size_t bytes = range.begin > last_end_ ? SpaceBytesAtEnd(text_.subspan(0, range.begin)) : 0)
        range.begin -= bytes;
      range.begin = std::clamp(range.begin, std::min(last_end_, range.end), range.end);
    }
    search_ = match_end;
    if (range.begin == range.end) continue;  // the token before has taken all of it
    last_end_ = range.end;
    *token = {range, set_->added_->ids[static_cast<size_t>(value)]};
    return ScanStatus::kFound;
  }
}

void AddedTokenScanner::Continue(Span<const char> text, size_t dropped, bool is_whole) {
  text_ = text;
  is_whole_ = is_whole;
  search_ -= dropped;
  last_end_ -= std::min(last_end_, dropped);
  spaces_ = {0, 0};
  certain_ -= dropped;
  known_before_ -= dropped;
}

}  // namespace tarn
