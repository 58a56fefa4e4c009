// Sequences that change places: which copies to make, in which order, so that nothing is overwritten before it was read.
#ifndef TARN_RUNTIME_INTERPRETER_REORDER_H_
#define TARN_RUNTIME_INTERPRETER_REORDER_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"

namespace tarn {

class Reordering {
 public:
  struct Move {
    uint32_t to, from;  // kSpare: a place for one
  };
  static constexpr uint32_t kSpare = UINT32_MAX;

  // In memory of the caller's, for `batch` sequences: moves [MaxMoves(batch)], wanted [batch].
  static size_t MaxMoves(size_t batch) { return batch + batch / 2; }
  Reordering(Span<Move> moves, Span<uint32_t> wanted) : moves_(moves), wanted_(wanted) {}

  // Sequence i becomes what sequence parents[i] is.
  void Plan(const uint32_t* parents);
  // Makes the planned copies of a state [batch, bytes].
  void Apply(uint8_t* state, uint64_t bytes) const;

 private:
  void Add(uint32_t to, uint32_t from) { moves_[count_++] = {to, from}; }

  Span<Move> moves_;
  Span<uint32_t> wanted_;  // how many others still want to read a sequence
  size_t count_ = 0;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_INTERPRETER_REORDER_H_
