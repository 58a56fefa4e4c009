// The C library's heap.
#include <cstdlib>

#include "core/allocator.h"

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

}  // namespace tarn
