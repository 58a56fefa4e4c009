// Without an operating system: one core, the one that calls.
#include "runtime/platform/cpu.h"

namespace tarn {

bool CpuIsKnown() { return false; }

uint32_t FastCores() { return 1; }

uint32_t DefaultThreads() { return 1; }

}  // namespace tarn
