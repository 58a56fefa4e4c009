// What the system says of the CPU. It may hide or make up anything below /proc and /sys, and any call may fail: then less is known.
#ifndef TARN_RUNTIME_PLATFORM_CPU_H_
#define TARN_RUNTIME_PLATFORM_CPU_H_

#include <cstdint>

namespace tarn {

// Whether XNNPACK can be told what the CPU is. Always, but on ARM, where that takes /proc and /sys: there found out once per
// process. Any thread.
bool CpuIsKnown();

// The number of cores without the little ones of a big.LITTLE system; at least 1, and 1 where the system does not tell. What it
// tells is remembered; a failure is not. Any thread.
uint32_t FastCores();
// The same below another folder than "/" (an absolute path without a slash at its end), and not remembered; 0: it does not tell.
// `arm`: the text of /proc/cpuinfo is that of ARM, and looked at.
uint32_t FastCoresIn(const char* root, bool arm);

// The fast cores, but no more than the processors that the calling thread may run on: its affinity, which a container or `taskset`
// sets. At least 1. Any thread.
uint32_t DefaultThreads();

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_CPU_H_
