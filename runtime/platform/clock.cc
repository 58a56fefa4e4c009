#include "runtime/platform/clock.h"

#include <chrono>

namespace tarn {

uint64_t MonotonicNs() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace tarn
