// The last tokens of a text: which they were, in which calls the session got them, and what is small enough to be kept for each.
#ifndef TARN_RUNTIME_GENERATION_TOKEN_LOG_H_
#define TARN_RUNTIME_GENERATION_TOKEN_LOG_H_

#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"
#include "runtime/generation/text_state.h"

namespace tarn {

class TokenLog {
 public:
  struct Entry {
    bool begins_call = false;
    bool in_grammar = false;
    TextState::How in_text = TextState::How::kNot;
  };

  // The last `capacity` >= 1 positions, of `batch` tokens and `point_bytes` each; only counts when `bump` has no block.
  void TakeArrays(Bump* bump, size_t capacity, size_t batch, size_t point_bytes) {
    capacity_ = capacity;
    batch_ = batch;
    point_bytes_ = point_bytes;
    entries_ = TakeArray<Entry>(*bump, capacity);
    tokens_ = TakeArray<int32_t>(*bump, uint64_t{capacity} * batch);
    points_ = TakeArray<uint8_t>(*bump, uint64_t{capacity} * point_bytes);
  }

  // It has the tokens [begin(), end()) of the text.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  void Restart(uint64_t position) { begin_ = end_ = position; }
  // Where it has fewer tokens, it has none then.
  void DropBehind(uint64_t position) {
    end_ = position;
    begin_ = begin_ < position ? begin_ : position;
  }

  // A place for the next token.
  size_t Add() {
    if (++end_ - begin_ > capacity_) begin_ = end_ - capacity_;
    return At(end_ - 1);
  }
  // Of a token that it has.
  size_t At(uint64_t position) const { return static_cast<size_t>(position % capacity_); }

  Entry& entry(size_t place) { return entries_[place]; }
  int32_t* tokens(size_t place) { return tokens_.data() + place * batch_; }       // [batch]
  uint8_t* point(size_t place) { return points_.data() + place * point_bytes_; }  // [point_bytes]: how it was behind the token

 private:
  size_t capacity_ = 0, batch_ = 0, point_bytes_ = 0;
  uint64_t begin_ = 0, end_ = 0;
  Span<Entry> entries_;
  Span<int32_t> tokens_;
  Span<uint8_t> points_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_GENERATION_TOKEN_LOG_H_
