// Hands out pieces of one block, in order. Without a block it only counts, so that the code which lays memory out also measures it.
#ifndef TARN_CORE_BUMP_H_
#define TARN_CORE_BUMP_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "core/arith.h"
#include "core/poison.h"
#include "core/span.h"

namespace tarn {

class Bump {
 public:
  Bump() = default;  // counts only: Take() returns nullptr
  explicit Bump(Span<uint8_t> block) : block_(block) {}

  // Bytes of the block that a piece takes: whole lines, and the red zone of AddressSanitizer.
  static constexpr uint64_t PieceBytes(uint64_t size_bytes) { return AlignUp(size_bytes) + kRedZone; }

  // `size_bytes` at a multiple of kAlignment from the start of the block; nullptr when counting or when the block is too short.
  // What lies behind them, up to the next piece, is poisoned: whoever gives the block back unpoisons it, as Block does.
  void* Take(uint64_t size_bytes) {
    const uint64_t offset = used_;
    used_ = offset + PieceBytes(size_bytes);
    if (used_ > block_.size()) return nullptr;
    uint8_t* piece = block_.data() + offset;
    Unpoison(piece, size_bytes);
    Poison(piece + size_bytes, used_ - offset - size_bytes);
    return piece;
  }

  // Bytes taken so far, alignment included.
  uint64_t used() const { return used_; }

 private:
  Span<uint8_t> block_;
  uint64_t used_ = 0;
};

// An array of default-constructed elements; empty when counting or when the block is too short.
template <typename T>
Span<T> TakeArray(Bump& bump, uint64_t count) {
  T* array = static_cast<T*>(bump.Take(count * sizeof(T)));
  if (array == nullptr) return {};
  for (size_t i = 0; i < count; ++i) new (&array[i]) T();
  return {array, static_cast<size_t>(count)};
}

}  // namespace tarn

#endif  // TARN_CORE_BUMP_H_
