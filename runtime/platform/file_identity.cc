#include "runtime/platform/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace tarn {
namespace {

constexpr int64_t kNsPerSecond = 1000000000;

int64_t Nanoseconds(const struct timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

}  // namespace

FileIdentity IdentityOf(int fd) {
  FileIdentity identity;
  struct stat info;
  if (fstat(fd, &info) != 0) return identity;
  identity.known = true;
  identity.device = static_cast<uint64_t>(info.st_dev);
  identity.inode = static_cast<uint64_t>(info.st_ino);
  identity.size_bytes = identity.length_bytes = static_cast<uint64_t>(info.st_size);
  identity.modified_ns = Nanoseconds(info.st_mtim);
  identity.changed_ns = Nanoseconds(info.st_ctim);
  return identity;
}

bool WaitForNextTick(const FileIdentity& file) {
  constexpr int64_t kTicksNs = 20000000;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
  const int64_t age = Nanoseconds(now) - file.changed_ns;
  if (age < 0) return false;
  if (age >= kTicksNs) return true;
  struct timespec left = {0, static_cast<long>(kTicksNs - age)};
  return nanosleep(&left, nullptr) == 0;
}

bool ReadBootId(char (&id)[kBootIdBytes]) {
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool whole = read(fd, id, kBootIdBytes - 1) == kBootIdBytes - 1;
  close(fd);
  id[kBootIdBytes - 1] = '\0';
  return whole;
}

}  // namespace tarn
