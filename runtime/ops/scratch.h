// Scratch of an op, handed out in pieces. One function of the op lays the pieces out and names the size of each: Prepare calls it
// without memory, at the limits, and requests what it counted; Run calls it over the memory. What Prepare counted is enough for
// every run because the sizes in such a function never fall as tokens and rows grow, and no run has more of them than the limits.
#ifndef TARN_RUNTIME_OPS_SCRATCH_H_
#define TARN_RUNTIME_OPS_SCRATCH_H_

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/bump.h"
#include "core/span.h"

namespace tarn {

// Equal parts of a memory, one after the other: of threads, of heads.
class ScratchParts;

class Scratch {
 public:
  Scratch() = default;  // counts only: every piece is nullptr
  explicit Scratch(Span<uint8_t> memory) : memory_(memory), bump_(memory), counts_(false) {}

  // `count` elements in whole cache lines; they hold anything. More than there is: a debug build stops, any other gets nullptr.
  template <typename T = float>
  T* Take(uint64_t count) {
    T* piece = static_cast<T*>(bump_.Take(count * sizeof(T)));
    assert((piece != nullptr || counts_) && "Run lays out more than Prepare counted");
    return piece;
  }
  // `count` parts of `part_bytes`, which another layout function counted.
  ScratchParts TakeParts(uint64_t count, uint64_t part_bytes);
  // The same with nothing laid out behind the pieces taken so far: for layouts that take turns. AddressSanitizer then knows of the
  // next one alone.
  Scratch Fresh() const {
    if (!counts_) Poison(memory_.data() + used(), memory_.size() - used());
    return *this;
  }

  uint64_t used() const { return bump_.used(); }  // bytes

 private:
  Span<uint8_t> memory_;
  Bump bump_;
  bool counts_ = true;
};

class ScratchParts {
 public:
  ScratchParts() = default;
  ScratchParts(Span<uint8_t> memory, uint64_t part_bytes) : memory_(memory), part_bytes_(static_cast<size_t>(part_bytes)) {}

  // Its pieces hold what they held when it was laid out in the same way before.
  Scratch operator[](size_t index) const {
    assert((index + 1) * part_bytes_ <= memory_.size());
    return Scratch(memory_.subspan(index * part_bytes_, part_bytes_));
  }

 private:
  Span<uint8_t> memory_;
  size_t part_bytes_ = 0;
};

inline ScratchParts Scratch::TakeParts(uint64_t count, uint64_t part_bytes) {
  uint8_t* parts = Take<uint8_t>(count * part_bytes);
  if (parts == nullptr) return {};
  Poison(parts, count * part_bytes);
  return ScratchParts({parts, static_cast<size_t>(count * part_bytes)}, part_bytes);
}

// Bytes of what lay(&scratch) lays out.
template <typename F>
uint64_t CountScratch(const F& lay) {
  Scratch scratch;
  lay(&scratch);
  return scratch.used();
}

// The most of lay(&scratch, tokens) for 1 to `max_chunk` tokens. A single token may have other pieces than a chunk of several,
// whose sizes grow with it.
template <typename F>
uint64_t CountScratch(uint64_t max_chunk, const F& lay) {
  const uint64_t step = CountScratch([&](Scratch* scratch) { lay(scratch, uint64_t{1}); });
  const uint64_t chunk = CountScratch([&](Scratch* scratch) { lay(scratch, max_chunk); });
  return step > chunk ? step : chunk;
}

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_SCRATCH_H_
