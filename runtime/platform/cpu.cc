#include "runtime/platform/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "runtime/platform/cpu_text.h"

#if defined(__arm__) || defined(__aarch64__)
#define TARN_ARM 1
#else
#define TARN_ARM 0
#endif

#if defined(TARN_HAVE_CPUINFO)
#include <cpuinfo.h>
#endif

namespace tarn {
namespace {

constexpr char kProcessors[] = "/sys/devices/system/cpu/";

// A file that is read to its end, in pieces.
class TextFile {
 public:
  explicit TextFile(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
  ~TextFile() {
    if (fd_ >= 0) close(fd_);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  // 0: the end; -1: an error.
  ssize_t Read(char* text, size_t text_bytes) const {
    ssize_t bytes = -1;
    do {
      bytes = fd_ < 0 ? -1 : read(fd_, text, text_bytes);
    } while (bytes < 0 && fd_ >= 0 && errno == EINTR);
    return bytes;
  }

 private:
  const int fd_;
};

// Empty: nothing is told. A list that is longer than any real one is none.
ProcessorSet ReadList(const char* path) {
  const TextFile file(path);
  char text[4096];
  size_t bytes = 0;
  while (bytes < sizeof(text)) {
    const ssize_t more = file.Read(text + bytes, sizeof(text) - bytes);
    if (more < 0) return {};
    if (more == 0) return ParseProcessorList(text, bytes);
    bytes += static_cast<size_t>(more);
  }
  return {};
}

bool ReadKinds(const char* root, CoreKinds* kinds) {
  char path[256];
  std::snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
  const TextFile file(path);
  char text[1024];
  for (;;) {
    const ssize_t bytes = file.Read(text, sizeof(text));
    if (bytes < 0) return false;
    if (bytes == 0) break;
    kinds->Feed(text, static_cast<size_t>(bytes));
  }
  kinds->Finish();
  return true;
}

// A processor that shares its core with one of a lower number, by simultaneous multithreading.
bool SharesACore(const char* root, uint32_t processor) {
  char path[256];
  std::snprintf(path, sizeof(path), "%s%scpu%u/topology/thread_siblings_list", root, kProcessors, processor);
  const ProcessorSet siblings = ReadList(path);
  return siblings.Has(processor) && siblings.Next(0) < processor;
}

}  // namespace

uint32_t FastCoresIn(const char* root, bool arm) {
  // Offline cores of a phone come back; threads that were switched off do not, and nothing tells whose siblings they are.
  char path[256];
  std::snprintf(path, sizeof(path), "%s%s%s", root, kProcessors, arm ? "present" : "online");
  const ProcessorSet processors = ReadList(path);
  CoreKinds kinds;
  if (processors.empty() || (arm && !(ReadKinds(root, &kinds) && kinds.lists_any() && processors.Has(kinds.first())))) return 0;
  // Big cores of several makes count alike: threads take work as they are done with theirs, so the A710s beside an X2, at three
  // quarters of its speed, still help. Little cores count where there are no others.
  uint32_t big = 0, little = 0;
  for (uint32_t i = processors.Next(0); i < kMaxProcessors; i = processors.Next(i + 1)) {
    if (!SharesACore(root, i)) ++(kinds.IsLittle(i) ? little : big);
  }
  return big != 0 ? big : little;
}

uint32_t FastCores() {
  static std::atomic<uint32_t> remembered{0};
  uint32_t cores = remembered.load(std::memory_order_relaxed);
  if (cores == 0) {
    cores = FastCoresIn("", TARN_ARM);
    remembered.store(cores, std::memory_order_relaxed);
  }
  return std::max(cores, uint32_t{1});
}

uint32_t DefaultThreads() {
  // How many are allowed, not which: some containers number the processors of /proc/cpuinfo anew.
  cpu_set_t allowed[8];  // 8,192 processors
  if (sched_getaffinity(0, sizeof(allowed), allowed) != 0) return FastCores();
  return std::max(std::min(FastCores(), static_cast<uint32_t>(CPU_COUNT_S(sizeof(allowed), allowed))), uint32_t{1});
}

#if TARN_ARM && defined(TARN_HAVE_CPUINFO)

namespace {

// cpuinfo crashes where /proc/cpuinfo lists no processor, or none that it takes for one, and where processor 0 is not listed (it
// may be offline) and nothing in /sys tells of the others; and where a list of processors cannot be read.
bool CpuinfoCanRead() {
  CoreKinds kinds;
  if (!ReadKinds("", &kinds) || !kinds.lists_any()) return false;
  for (const char* name : {"possible", "present"}) {
    char path[256];
    std::snprintf(path, sizeof(path), "%s%s", kProcessors, name);
    if (!ReadList(path).Has(kinds.first())) return false;
  }
  if (kinds.first() == 0) return true;
  char path[256];
  std::snprintf(path, sizeof(path), "%scpu%u/topology/physical_package_id", kProcessors, kinds.first());
  return access(path, R_OK) == 0;
}

}  // namespace

bool CpuIsKnown() {
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_acquire)) return true;
  if (!CpuinfoCanRead() || !cpuinfo_initialize() || cpuinfo_get_clusters_count() == 0) return false;
  known.store(true, std::memory_order_release);
  return true;
}

#elif defined(TARN_HAVE_CPUINFO)

// On x86 that of cpuinfo_x86.cc: a linker takes that file out of an archive, before cpuinfo's own, because it is named here.
bool CpuIsKnown() { return cpuinfo_initialize(); }

#else

bool CpuIsKnown() { return false; }

#endif

}  // namespace tarn
