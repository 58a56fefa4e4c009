#include "runtime/generation/checkpoint_ring.h"

#include <algorithm>

namespace tarn {

void CheckpointRing::TakeArrays(Bump* bump, uint32_t capacity) {
  entries_ = TakeArray<Checkpoint>(*bump, capacity);
  for (uint32_t i = 0; i < entries_.size(); ++i) entries_[i].slot = i;
}

const Checkpoint* CheckpointRing::LastUntil(uint64_t position) const {
  for (size_t i = size_; i-- > 0;) {
    if (entries_[i].position <= position) return &entries_[i];
  }
  return nullptr;
}

const Checkpoint* CheckpointRing::FindTag(uint64_t tag) const {
  for (size_t i = size_; i-- > 0;) {
    if (entries_[i].has_tag && entries_[i].tag == tag) return &entries_[i];
  }
  return nullptr;
}

Checkpoint* CheckpointRing::Add(uint64_t position, bool has_tag, uint64_t tag) {
  if (size_ == entries_.size()) {
    const size_t least = LeastMissed(position, has_tag);
    if (least == size_) return nullptr;
    Remove(least);
  }
  Checkpoint& added = entries_[size_++];
  added = {position, tag, has_tag, false, added.slot};
  return &added;
}

size_t CheckpointRing::LeastMissed(uint64_t now, bool for_tag) const {
  size_t least = size_, first_without_tag = size_;
  double least_space = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (entries_[i].has_tag) continue;
    if (first_without_tag == size_) first_without_tag = i;
    if (i == 0) continue;  // the farthest way back
    const uint64_t before = entries_[i - 1].position, behind = i + 1 < size_ ? entries_[i + 1].position : now;
    const double space = static_cast<double>(behind - before) / static_cast<double>(now - before + 1);
    if (least == size_ || space < least_space) {
      least = i;
      least_space = space;
    }
  }
  if (least < size_) return least;
  if (first_without_tag < size_) return first_without_tag;
  return for_tag ? 0 : size_;
}

void CheckpointRing::Remove(size_t index) {
  const auto removed = entries_.begin() + index;
  std::rotate(removed, removed + 1, entries_.begin() + size_);
  --size_;
}

}  // namespace tarn
