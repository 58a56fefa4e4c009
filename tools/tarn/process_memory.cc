#include "tools/tarn/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tarn_cli {
namespace {

// The sum of all lines "Anonymous: N kB", in bytes.
std::optional<uint64_t> SumAnonymous(const char* path) {
  constexpr char kField[] = "Anonymous:";
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char buffer[4096];
  char line[128];  // only the beginning of a line matters
  size_t length = 0;
  uint64_t total_kib = 0;
  bool found = false;
  ssize_t size;
  while ((size = read(fd, buffer, sizeof(buffer))) > 0) {
    for (ssize_t i = 0; i < size; ++i) {
      if (buffer[i] != '\n') {
        if (length + 1 < sizeof(line)) line[length++] = buffer[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      if (std::strncmp(line, kField, sizeof(kField) - 1) != 0) continue;
      total_kib += std::strtoull(line + sizeof(kField) - 1, nullptr, 10);
      found = true;
    }
  }
  close(fd);
  if (size < 0 || !found) return std::nullopt;
  return total_kib * 1024;
}

}  // namespace

std::optional<uint64_t> AnonymousPages() {
  std::optional<uint64_t> bytes = SumAnonymous("/proc/self/smaps_rollup");
  if (!bytes) bytes = SumAnonymous("/proc/self/smaps");  // kernels before 4.14
  if (!bytes) return std::nullopt;
  return *bytes / static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace tarn_cli
