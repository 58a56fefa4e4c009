#include "runtime/platform/huge_pages.h"

#include <cstddef>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tarn {

void AdviseHugePages([[maybe_unused]] Span<uint8_t> memory) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;  // the usual one; a multiple of every small one
  const uintptr_t first = (reinterpret_cast<uintptr_t>(memory.begin()) + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = reinterpret_cast<uintptr_t>(memory.end()) / kHugePage * kHugePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace tarn
