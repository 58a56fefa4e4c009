#include "runtime/text/charsmap_step.h"

#include "runtime/text/code_point.h"
#include "runtime/text/spaces.h"

namespace tarn {

CharsMapStep::CharsMapStep(Span<uint32_t> words)
    : words_(words),
      cluster_(words.subspan(0, kWholeBytes * NormalQueue::kWords)),
      waiting_(words.subspan(kWholeBytes * NormalQueue::kWords, kWaiting * NormalQueue::kWords)) {}

void CharsMapStep::Append(const NormalChar& c) {
  char bytes[kMaxCharacterBytes];
  cluster_.Push(c);
  bytes_ += c.code < kBadByte ? EncodeCodePoint(c.code, bytes) : 1;
  is_singles_ = is_singles_ || bytes_ >= kWholeBytes;
}

void CharsMapStep::Begin(const NormalTables& tables, const NormalChar& c) {
  state_ = tables.clusters.Over(tables.clusters.start(), c.code).state;
  bytes_ = 0;
  has_cluster_ = true;
  is_closed_ = is_ended_;
  is_singles_ = false;
  Append(c);
}

void CharsMapStep::Put(const NormalTables& tables, const NormalChar& c) {
  if (waiting_.is_full()) waiting_.Pop();
  waiting_.Push(c);
  if (!has_cluster_) return Begin(tables, c);
  state_ = tables.clusters.Over(state_, c.code).state;
  if (state_ != 0) return Append(c);
  next_ = c;
  has_next_ = is_closed_ = true;
}

TextRange CharsMapStep::StandFor(size_t characters) {
  TextRange first = last_;
  for (size_t i = 0; i < characters && waiting_.size() > 0; ++i) {
    last_ = waiting_.Pop().origin;
    if (i == 0) first = last_;
  }
  return first;
}

void CharsMapStep::Remove(size_t characters) {
  is_adrift_ = is_adrift_ || !has_made_;
  if (!has_made_) return;
  const TextRange first = StandFor(characters);
  if (has_held_ && held_is_put_in_) held_.origin = first;
  held_is_put_in_ = false;
}

bool CharsMapStep::Replace(const NormalTables& tables, size_t characters) {
  char bytes[kWholeBytes * kMaxCharacterBytes];
  size_t size = 0;
  for (size_t i = 0; i < characters; ++i) {
    const uint32_t code = cluster_.Get(i).code;
    if (code >= kBadByte) return false;
    size += EncodeCodePoint(code, bytes + size);
  }
  if (!tables.charsmap.FindShortest({bytes, size}, &text_)) return false;
  for (size_t i = 0; i < characters; ++i) cluster_.Pop();
  for (const char byte : text_) left_ += IsContinuation(byte) ? 0 : 1;
  added_ = left_ - static_cast<ptrdiff_t>(characters);
  if (left_ == 0) Remove(characters);
  return true;
}

void CharsMapStep::Advance(const NormalTables& tables) {
  if (!is_singles_ && Replace(tables, cluster_.size())) return;
  is_singles_ = true;
  if (Replace(tables, 1)) return;
  text_ = {};
  single_ = cluster_.Pop().code;
  left_ = 1;
  added_ = 0;
}

NormalChar CharsMapStep::Make(bool* is_put_in) {
  --left_;
  NormalChar c = {single_, last_};
  if (!text_.empty()) {
    const auto* const at = reinterpret_cast<const uint8_t*>(text_.data());
    const CodePoint next = DecodeCodePoint(at, at + text_.size());
    c.code = next.code;
    text_ = text_.subspan(next.bytes, text_.size() - next.bytes);
  }
  *is_put_in = left_ < added_;
  if (!*is_put_in) c.origin = StandFor(left_ == 0 && added_ < 0 ? static_cast<size_t>(1 - added_) : 1);
  has_made_ = true;
  return c;
}

NormalForm::Status CharsMapStep::Take(const NormalTables& tables, NormalChar* c) {
  for (;;) {
    if (has_held_ && (left_ > 0 || (is_closed_ && cluster_.size() == 0 && !has_next_))) {
      *c = held_;
      has_held_ = false;
      return NormalForm::Status::kGiven;
    }
    if (left_ > 0) {
      const NormalChar made = Make(&held_is_put_in_);
      if (!held_is_put_in_) {
        *c = made;
        return NormalForm::Status::kGiven;
      }
      held_ = made;
      has_held_ = true;
      continue;
    }
    if (cluster_.size() > 0 && (is_closed_ || is_singles_)) {
      Advance(tables);
      continue;
    }
    if (!is_closed_) return NormalForm::Status::kInput;
    if (has_next_) {
      has_next_ = false;
      Begin(tables, next_);
      continue;
    }
    is_ended_ = is_closed_ = has_cluster_ = false;
    return NormalForm::Status::kEnd;
  }
}

}  // namespace tarn
