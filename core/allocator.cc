#include "core/allocator.h"

namespace tarn {

Result<Block> Block::Allocate(const Allocator& allocator, uint64_t size_bytes, const char* what) {
  Block block;
  if (size_bytes == 0) return block;
  if (allocator.allocate == nullptr) {
    return Error(TARN_OUT_OF_MEMORY, "%s: %llu bytes expected, and this build has no heap: set the config's allocator", what,
                 static_cast<unsigned long long>(size_bytes));
  }
  void* pointer = nullptr;
  if (size_bytes <= SIZE_MAX) {
    pointer = allocator.allocate(allocator.context, static_cast<size_t>(size_bytes), kAlignment);
  }
  if (pointer == nullptr) {
    return Error(TARN_OUT_OF_MEMORY, "%s: cannot allocate %llu bytes", what, static_cast<unsigned long long>(size_bytes));
  }
  if (reinterpret_cast<uintptr_t>(pointer) % kAlignment != 0) {
    allocator.release(allocator.context, pointer, static_cast<size_t>(size_bytes));
    return Error(TARN_INVALID_ARGUMENT, "%s: the allocator's memory is not aligned to %zu bytes", what, kAlignment);
  }
  block.allocator_ = allocator;
  block.bytes_ = {static_cast<uint8_t*>(pointer), static_cast<size_t>(size_bytes)};
  return block;
}

}  // namespace tarn
