// Pages that the system may make larger.
#ifndef TARN_RUNTIME_PLATFORM_HUGE_PAGES_H_
#define TARN_RUNTIME_PLATFORM_HUGE_PAGES_H_

#include <cstdint>

#include "core/span.h"

namespace tarn {

// Asks for huge pages in memory that has not been written yet and will be read from end to end again and again. A wish: nothing
// else changes where the system does not grant it.
void AdviseHugePages(Span<uint8_t> memory);

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_HUGE_PAGES_H_
