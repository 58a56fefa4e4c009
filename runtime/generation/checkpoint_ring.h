// Which checkpoints of a text are kept: where each lies, and which one goes when there is no room.
//
// Those with a tag stay as long as there is one without. Of the others the one goes that is missed least: the checkpoints before
// and behind it are close to each other, measured by their age. So the spaces between those that stay double with age.
#ifndef TARN_RUNTIME_GENERATION_CHECKPOINT_RING_H_
#define TARN_RUNTIME_GENERATION_CHECKPOINT_RING_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"

namespace tarn {

struct Checkpoint {
  uint64_t position = 0;  // tokens
  uint64_t tag = 0;
  bool has_tag = false;
  bool has_logits = false;
  uint32_t slot = 0;  // less than the capacity; no two have the same
};

class CheckpointRing {
 public:
  // Room for `capacity` >= 1; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, uint32_t capacity);

  // By position.
  size_t size() const { return size_; }
  const Checkpoint& operator[](size_t i) const { return entries_[i]; }
  // The last one that is not behind `position`; nullptr: none.
  const Checkpoint* LastUntil(uint64_t position) const;
  // The last one with the tag; nullptr: none.
  const Checkpoint* FindTag(uint64_t tag) const;

  // A place for a checkpoint that is not before any other. nullptr: it has no tag and all others have, which stay.
  Checkpoint* Add(uint64_t position, bool has_tag, uint64_t tag);
  // The last one.
  Checkpoint& back() { return entries_[size_ - 1]; }
  // Forgets those after `checkpoint`, which is one of them.
  void DropAfter(const Checkpoint& checkpoint) { size_ = static_cast<size_t>(&checkpoint - entries_.data()) + 1; }
  void Clear() { size_ = 0; }

 private:
  // An index; size_: none may go.
  size_t LeastMissed(uint64_t now, bool for_tag) const;
  void Remove(size_t index);

  Span<Checkpoint> entries_;  // those behind size_ have the slots that are free
  size_t size_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_CHECKPOINT_RING_H_
