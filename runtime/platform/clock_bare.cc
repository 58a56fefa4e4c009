#include "runtime/platform/clock.h"

namespace tarn {

// Timers are the board's.
uint64_t MonotonicNs() { return 0; }

}  // namespace tarn
