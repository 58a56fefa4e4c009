// What cpuinfo finds out about the CPU, behind a check. It reads /proc and /sys, which some sandboxes hide or leave empty.
#ifndef TARN_RUNTIME_PLATFORM_CPU_H_
#define TARN_RUNTIME_PLATFORM_CPU_H_

#include <cstdint>

namespace tarn {

// Whether cpuinfo can tell what the CPU is; if not, XNNPACK cannot run. Found out once per process; any thread.
bool CpuIsKnown();

// The number of cores without the little ones of a big.LITTLE system; at least 1, and 1 where the CPU is not known. Any thread.
uint32_t FastCores();

// The fast cores, but no more than the processors that the calling thread may run on: its affinity, which a container or `taskset`
// sets. At least 1. Any thread.
uint32_t DefaultThreads();

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_CPU_H_
