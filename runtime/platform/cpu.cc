#include "runtime/platform/cpu.h"

#if defined(TARN_HAVE_XNNPACK)
#include <cpuinfo.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#endif

namespace tarn {

#if defined(TARN_HAVE_XNNPACK)

namespace {

// cpuinfo crashes where /proc/cpuinfo lists no processor, or none that it takes for one: an empty file in a sandbox, say; and where
// processor 0 is not listed (it may be offline) and nothing in /sys tells of the others. A kernel lists the first one at the top.
bool ListsAProcessor() {
  const int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[1024];  // the longest line that cpuinfo reads
  const ssize_t bytes = read(fd, text, sizeof(text) - 1);
  close(fd);
  text[bytes < 0 ? 0 : bytes] = '\0';
  for (const char* line = text; line != nullptr; line = std::strchr(line, '\n')) {
    line += *line == '\n';
    unsigned number = 0;
    if (std::sscanf(line, "processor : %5u", &number) != 1) continue;
    if (number == 0) return true;
    char topology[80];
    std::snprintf(topology, sizeof(topology), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", number);
    return number < 1024 && access(topology, R_OK) == 0;
  }
  return false;
}

// The in-order cores of ARM. They stand beside others to save power, and are several times slower.
bool IsLittle(cpuinfo_uarch core) {
  switch (core) {
    case cpuinfo_uarch_cortex_a5:
    case cpuinfo_uarch_cortex_a7:
    case cpuinfo_uarch_cortex_a32:
    case cpuinfo_uarch_cortex_a35:
    case cpuinfo_uarch_cortex_a53:
    case cpuinfo_uarch_cortex_a55r0:
    case cpuinfo_uarch_cortex_a55:
    case cpuinfo_uarch_cortex_a510:
    case cpuinfo_uarch_cortex_a520:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool CpuIsKnown() {
  static const bool known = ListsAProcessor() && cpuinfo_initialize() && cpuinfo_get_clusters_count() > 0;
  return known;
}

uint32_t FastCores() {
  if (!CpuIsKnown()) return 1;
  // Big cores of several makes count alike: threads take work as they are done with theirs, so the A710s beside an X2, at three
  // quarters of its speed, still help. Little cores count where there are no others.
  uint32_t big = 0, little = 0;
  for (uint32_t i = 0; i < cpuinfo_get_cores_count(); ++i) ++(IsLittle(cpuinfo_get_core(i)->uarch) ? little : big);
  return std::max(big != 0 ? big : little, uint32_t{1});
}

uint32_t DefaultThreads() {
  // How many are allowed, not which: some containers number the processors of /proc/cpuinfo anew.
  cpu_set_t allowed[8];  // 8,192 processors
  if (sched_getaffinity(0, sizeof(allowed), allowed) != 0) return FastCores();
  return std::min(FastCores(), static_cast<uint32_t>(CPU_COUNT_S(sizeof(allowed), allowed)));
}

#else  // no threads without pthreadpool

bool CpuIsKnown() { return false; }

uint32_t FastCores() { return 1; }

uint32_t DefaultThreads() { return 1; }

#endif

}  // namespace tarn
