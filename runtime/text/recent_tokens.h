// The tokens that were accepted last: what penalties look at.
#ifndef TARN_RUNTIME_TEXT_RECENT_TOKENS_H_
#define TARN_RUNTIME_TEXT_RECENT_TOKENS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/span.h"

namespace tarn {

class RecentTokens {
 public:
  // Without a ring, or with an empty one, nothing is kept.
  void Use(Span<int32_t> ring) { ring_ = ring; }

  size_t capacity() const { return ring_.size(); }
  size_t size() const { return used_; }
  // i < size(); 0 is the newest.
  int32_t operator[](size_t i) const { return ring_[next_ > i ? next_ - 1 - i : next_ + ring_.size() - 1 - i]; }

  void Add(int32_t token) {
    if (ring_.empty()) return;
    ring_[next_] = token;
    next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
    used_ = std::min(used_ + 1, ring_.size());
  }
  void Clear() { next_ = used_ = 0; }

  // As bytes, at any alignment, and back into a ring of the same size.
  size_t state_bytes() const { return 2 * sizeof(size_t) + ring_.size() * sizeof(int32_t); }
  void Save(uint8_t* state) const {
    const size_t counts[] = {used_, next_};
    std::memcpy(state, counts, sizeof(counts));
    if (!ring_.empty()) std::memcpy(state + sizeof(counts), ring_.data(), ring_.size() * sizeof(int32_t));
  }
  void Restore(const uint8_t* state) {
    size_t counts[2];
    std::memcpy(counts, state, sizeof(counts));
    used_ = counts[0];
    next_ = counts[1];
    if (!ring_.empty()) std::memcpy(ring_.data(), state + sizeof(counts), ring_.size() * sizeof(int32_t));
  }

 private:
  Span<int32_t> ring_;
  size_t used_ = 0;  // entries of the ring that hold a token
  size_t next_ = 0;  // where the next one goes
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_RECENT_TOKENS_H_
