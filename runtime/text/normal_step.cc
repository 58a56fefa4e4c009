#include "runtime/text/normal_step.h"

namespace tarn {
namespace {

uint32_t Low(size_t value) { return static_cast<uint32_t>(value); }
uint32_t High(size_t value) { return static_cast<uint32_t>(uint64_t{value} >> 32); }
size_t Joined(uint32_t low, uint32_t high) { return static_cast<size_t>(uint64_t{high} << 32 | low); }

}  // namespace

void NormalQueue::Push(const NormalChar& c) {
  uint32_t* const words = words_.data() + (first_ + size_++) % capacity_ * kWords;
  words[0] = c.code;
  words[1] = Low(c.origin.begin);
  words[2] = High(c.origin.begin);
  words[3] = Low(c.origin.end);
  words[4] = High(c.origin.end);
}

NormalChar NormalQueue::Get(size_t i) const {
  const uint32_t* const words = words_.data() + (first_ + i) % capacity_ * kWords;
  return {words[0], {Joined(words[1], words[2]), Joined(words[3], words[4])}};
}

NormalChar NormalQueue::Pop() {
  const NormalChar c = Get(0);
  first_ = (first_ + 1) % capacity_;
  --size_;
  return c;
}

NormalForm::NormalForm(bool is_compatibility, bool composes, Span<uint32_t> words)
    : is_compatibility_(is_compatibility),
      composes_(composes),
      waiting_(words.subspan(0, kWaiting * NormalQueue::kWords)),
      parts_(words.subspan(kWaiting * NormalQueue::kWords, (kRunParts + kKeptParts) * kPartWords)) {}

NormalForm::Part NormalForm::Get(size_t slot) const {
  const uint32_t word = parts_[slot * kPartWords + 1];
  return {parts_[slot * kPartWords], static_cast<int16_t>(word >> 16), static_cast<uint16_t>(word & 0xFFFF)};
}

void NormalForm::Set(size_t slot, const Part& part) {
  parts_[slot * kPartWords] = part.code;
  parts_[slot * kPartWords + 1] = static_cast<uint32_t>(static_cast<uint16_t>(part.added)) << 16 | part.combining;
}

void NormalForm::Append(const NormalTables& tables, uint32_t code, bool is_first) {
  const uint16_t combining = tables.Class(code) & 0xFF;
  Set(run_++, {code, static_cast<int16_t>(is_first ? 0 : 1), combining});
}

void NormalForm::Put(const NormalTables& tables, const NormalChar& c) {
  waiting_.Push(c);
  const uint16_t of = tables.Class(c.code);
  const uint32_t syllable = c.code - kHangulFirst;
  if ((of & kNormalHangul) != 0 && syllable < kHangulCount) {
    Append(tables, kLFirst + syllable / (kVCount * kTCount), true);
    Append(tables, kVFirst + syllable / kTCount % kVCount, false);
    if (syllable % kTCount != 0) Append(tables, kTFirst + syllable % kTCount, false);
    return;
  }
  CodeView mapped;
  if (is_compatibility_ && (of & kNormalCompatibility) != 0) mapped = tables.Map(tables.compatibility, c.code);
  if (mapped.size() == 0 && (of & kNormalCanonical) != 0) mapped = tables.Map(tables.canonical, c.code);
  if (mapped.size() == 0) Append(tables, c.code, true);
  for (size_t i = 0; i < mapped.size(); ++i) Append(tables, mapped[i], i == 0);
}

// Marks stably by combining class: slots [0, end) become ready.
void NormalForm::Order(size_t end) {
  // A run is a character and a few marks; what is in order already is passed once.
  for (size_t i = 1; i < end; ++i) {
    const Part part = Get(i);
    size_t to = i;
    for (; to > 0 && Get(to - 1).combining > part.combining; --to) Set(to, Get(to - 1));
    if (to != i) Set(to, part);
  }
  ready_ = end;
}

// Whether what is decomposed begins with a run that no further input can change; it is then ready.
bool NormalForm::FindRun() {
  for (; scanned_ < run_; ++scanned_) {
    if (Get(scanned_).combining != 0) continue;
    Order(scanned_);
    return true;
  }
  const bool is_full = run_ >= kMaxFormRun || waiting_.is_full();
  if (run_ == 0 || !(is_ended_ || is_full)) return false;
  Order(run_);
  return true;
}

void NormalForm::Keep(const Part& part) {
  Set(kRunParts + kept_++, part);
  last_combining_ = part.combining;
  if (kept_ == kKeptParts) gives_ = true;
}

void NormalForm::Feed(const NormalTables& tables, const Part& part) {
  if (kept_ == 0) {
    Keep(part);
    gives_ = gives_ || !composes_ || part.combining != 0;
    return;
  }
  const Part first = Get(kRunParts);
  if (last_combining_ == 0 || last_combining_ < part.combining) {
    const uint32_t composed = tables.Compose(first.code, part.code);
    if (composed != 0) {
      Set(kRunParts, {composed, static_cast<int16_t>(first.added + part.added - 1), 0});
      return;
    }
  }
  if (part.combining != 0) {
    Keep(part);
    return;
  }
  next_ = part;
  has_next_ = gives_ = true;
}

NormalChar NormalForm::Aligned(const Part& part) {
  NormalChar c = {part.code, last_};
  for (int32_t left = 1 - part.added, i = 0; i < left && waiting_.size() > 0; ++i) {
    last_ = waiting_.Pop().origin;
    if (i == 0) c.origin = last_;
  }
  return c;
}

NormalForm::Status NormalForm::Take(const NormalTables& tables, NormalChar* c) {
  for (;;) {
    if (gives_ && given_ < kept_) {
      *c = Aligned(Get(kRunParts + given_++));
      return Status::kGiven;
    }
    if (gives_) {
      gives_ = false;
      kept_ = given_ = 0;
      last_combining_ = 0;
      if (has_next_) Keep(next_);
      has_next_ = false;
      continue;
    }
    if (fed_ < ready_) {
      Feed(tables, Get(fed_++));
      continue;
    }
    for (size_t i = ready_; i < run_ && ready_ > 0; ++i) Set(i - ready_, Get(i));
    run_ -= ready_;
    if (ready_ > 0) scanned_ = 1;
    ready_ = fed_ = 0;
    if (FindRun()) continue;
    if (kept_ > 0 && (is_ended_ || waiting_.is_full())) {
      gives_ = true;
      continue;
    }
    if (!is_ended_) return Status::kInput;
    is_ended_ = false;
    return Status::kEnd;
  }
}

}  // namespace tarn
