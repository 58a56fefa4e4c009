// No heap.
#include "core/allocator.h"

namespace tarn {

Allocator DefaultAllocator() { return {nullptr, nullptr, nullptr}; }

}  // namespace tarn
