#include "runtime/core/allocator.h"

#include <cstdlib>

namespace tarn {
namespace {

void* LibcAllocate(void*, size_t size_bytes, size_t alignment) {
  void* pointer = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  return posix_memalign(&pointer, alignment, size_bytes) == 0 ? pointer : nullptr;
}

void LibcRelease(void*, void* pointer, size_t) { std::free(pointer); }

}  // namespace

Allocator DefaultAllocator() { return {LibcAllocate, LibcRelease, nullptr}; }

Result<Block> Block::Allocate(const Allocator& allocator, uint64_t size_bytes, const char* what) {
  Block block;
  if (size_bytes == 0) return block;
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
