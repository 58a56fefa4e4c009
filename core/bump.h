// Hands out pieces of one block, in order. Without a block it only counts, so that the code which lays memory out also measures it.
#ifndef TARN_CORE_BUMP_H_
#define TARN_CORE_BUMP_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "core/arith.h"
#include "core/span.h"

namespace tarn {

class Bump {
 public:
  Bump() = default;  // counts only: Take() returns nullptr
  explicit Bump(Span<uint8_t> block) : block_(block) {}

  // `size_bytes` at a multiple of kAlignment from the start of the block; nullptr when counting or when the block is too short.
  void* Take(uint64_t size_bytes) {
    const uint64_t offset = used_;
    used_ = offset + AlignUp(size_bytes);
    return used_ <= block_.size() ? block_.data() + offset : nullptr;
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
