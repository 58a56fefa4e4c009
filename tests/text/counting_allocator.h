// A caller's allocator that counts, and runs out.
#ifndef TARN_TESTS_TEXT_COUNTING_ALLOCATOR_H_
#define TARN_TESTS_TEXT_COUNTING_ALLOCATOR_H_

#include <cstddef>

#include "core/allocator.h"

namespace tarn {

// Gives out `allowed` blocks.
struct CountingAllocator {
  int allowed;
  int calls = 0;
  int live = 0;
  size_t size_bytes = 0;  // of all

  Allocator get() {
    return {[](void* context, size_t size, size_t alignment) -> void* {
              auto* self = static_cast<CountingAllocator*>(context);
              if (++self->calls > self->allowed) return nullptr;
              ++self->live;
              self->size_bytes += size;
              return DefaultAllocator().allocate(nullptr, size, alignment);
            },
            [](void* context, void* pointer, size_t size) {
              --static_cast<CountingAllocator*>(context)->live;
              DefaultAllocator().release(nullptr, pointer, size);
            },
            this};
  }
};

}  // namespace tarn

#endif  // TARN_TESTS_TEXT_COUNTING_ALLOCATOR_H_
