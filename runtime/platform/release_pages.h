// Memory that the system gets back until it is written again.
#ifndef TARN_RUNTIME_PLATFORM_RELEASE_PAGES_H_
#define TARN_RUNTIME_PLATFORM_RELEASE_PAGES_H_

#include <cstdint>

#include "core/span.h"

namespace tarn {

// Gives back the whole pages in `memory`. What they held is undefined afterwards. Returns the bytes of those that were resident; 0
// where the system takes none (locked memory, no operating system): zeros are zeros then, too.
uint64_t ReleasePages(Span<uint8_t> memory);

// The same for those of the pages that are all zero, which they stay, whatever kind of memory it is.
uint64_t ReleaseZeroPages(Span<uint8_t> memory);

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_RELEASE_PAGES_H_
