// A clock for measuring durations.
#ifndef TARN_RUNTIME_PLATFORM_CLOCK_H_
#define TARN_RUNTIME_PLATFORM_CLOCK_H_

#include <cstdint>

namespace tarn {

// Nanoseconds since some moment. Always 0 where there is no operating system (clock_bare.cc).
uint64_t MonotonicNs();

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_CLOCK_H_
