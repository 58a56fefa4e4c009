#include "tests/text/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> count{0};

void* Counted(size_t size) {
  ++count;
  return std::malloc(size);
}

}  // namespace

uint64_t tarn::AllocationCount() { return count; }

void* operator new(size_t size) {
  void* pointer = Counted(size);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Counted(size); }
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { std::free(pointer); }
