#include "runtime/platform/cache_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace tarn {
namespace {

constexpr char kTemporarySuffix[] = ".tarn-tmp";

bool IsFolder(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// The folder that `path` lies in. False: the path is empty or too long.
bool ParentOf(const char* path, char (&parent)[PATH_MAX]) {
  size_t length = std::strlen(path);
  while (length > 1 && path[length - 1] == '/') --length;
  while (length > 0 && path[length - 1] != '/') --length;
  while (length > 1 && path[length - 1] == '/') --length;
  if (path[0] == '\0' || length >= PATH_MAX) return false;
  std::memcpy(parent, length == 0 ? "." : path, length == 0 ? 1 : length);
  parent[length == 0 ? 1 : length] = '\0';
  return true;
}

bool HasSuffix(const char* name, const char* suffix) {
  const size_t length = std::strlen(name);
  const size_t wanted = std::strlen(suffix);
  return length > wanted && std::strcmp(name + length - wanted, suffix) == 0;
}

// Removes temporary files that nobody holds a lock on.
void RemoveAbandoned(int folder) {
  const int listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = listed < 0 ? nullptr : fdopendir(listed);
  if (list == nullptr) {
    if (listed >= 0) close(listed);
    return;
  }
  while (const dirent* entry = readdir(list)) {
    if (!HasSuffix(entry->d_name, kTemporarySuffix)) continue;
    const int file = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    // If its maker published the file just now, this name is gone.
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(folder, entry->d_name, 0);
    close(file);
  }
  closedir(list);
}

}  // namespace

CacheFile::~CacheFile() {
  CloseFiles();
  if (exists()) munmap(bytes_.data(), bytes_.size());
}

// A file that was not published has its temporary name still.
void CacheFile::CloseFiles() {
  if (temporary_[0] != '\0') unlinkat(folder_, temporary_, 0);
  temporary_[0] = '\0';
  if (file_ >= 0) close(file_);
  if (folder_ >= 0) close(folder_);
  file_ = folder_ = -1;
}

bool CacheFile::Map(uint64_t size_bytes, int protection) {
  if (size_bytes == 0 || size_bytes > SIZE_MAX) return false;
  void* base = mmap(nullptr, static_cast<size_t>(size_bytes), protection, MAP_SHARED, file_, 0);
  if (base == MAP_FAILED) return false;
  bytes_ = {static_cast<uint8_t*>(base), static_cast<size_t>(size_bytes)};
  return true;
}

CacheFile CacheFile::Open(const char* folder, const char* name, uint64_t size_bytes) {
  CacheFile file;
  file.folder_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file.folder_ < 0) return CacheFile();
  file.file_ = openat(file.folder_, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  if (file.file_ < 0 || fstat(file.file_, &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != size_bytes || (info.st_uid != geteuid() && info.st_uid != 0) ||
      !file.Map(size_bytes, PROT_READ)) {
    return CacheFile();
  }
  file.identity_ = IdentityOf(file.file_);
  file.CloseFiles();
  return file;
}

bool CacheFile::CanCreate(const char* folder, uint64_t size_bytes) {
  // Past this limit the system would send SIGXFSZ.
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size_bytes) return false;
  char parent[PATH_MAX];
  if (access(folder, F_OK) != 0) {
    if (errno != ENOENT || !ParentOf(folder, parent)) return false;
    folder = parent;
  }
  struct statvfs disk;
  return IsFolder(folder) && access(folder, R_OK | W_OK | X_OK) == 0 && statvfs(folder, &disk) == 0 &&
         uint64_t{disk.f_bavail} * disk.f_frsize > size_bytes;
}

CacheFile CacheFile::Create(const char* folder, const char* name, uint64_t size_bytes) {
  if (!CanCreate(folder, size_bytes)) return CacheFile();
  mkdir(folder, 0700);  // it may be there
  CacheFile file;
  file.folder_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file.folder_ < 0) return CacheFile();
  RemoveAbandoned(file.folder_);
  const off_t length = static_cast<off_t>(size_bytes);
  if (length < 0 || static_cast<uint64_t>(length) != size_bytes || !file.CreateTemporary(name) ||
      posix_fallocate(file.file_, 0, length) != 0 || !file.Map(size_bytes, PROT_READ | PROT_WRITE)) {
    return CacheFile();
  }
  return file;
}

bool CacheFile::CreateTemporary(const char* name) {
  // Another thread may be making the same file, another container may have the same process id.
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    char temporary[kMaxName];
    const int length =
        std::snprintf(temporary, kMaxName, "%s.%ld-%d%s", name, static_cast<long>(getpid()), attempt, kTemporarySuffix);
    if (static_cast<size_t>(length) >= kMaxName) return false;
    const int file = openat(folder_, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return false;
    // Before there was a lock, another process may have taken the file for abandoned.
    struct stat info;
    const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0;
    const bool can_lock = locked || errno == EWOULDBLOCK;
    if (locked && fstat(file, &info) == 0 && info.st_nlink > 0) {
      file_ = file;
      std::memcpy(temporary_, temporary, kMaxName);
      return true;
    }
    unlinkat(folder_, temporary, 0);
    close(file);
    if (!can_lock) return false;
  }
  return false;
}

bool CacheFile::Sync() const { return msync(bytes_.data(), bytes_.size(), MS_SYNC) == 0; }

void CacheFile::Publish(const char* name) {
  if (renameat(folder_, temporary_, folder_, name) == 0) {
    temporary_[0] = '\0';
    identity_ = IdentityOf(file_);
  }
  KeepUnnamed();
}

void CacheFile::KeepUnnamed() {
  CloseFiles();
  mprotect(bytes_.data(), bytes_.size(), PROT_READ);
}

}  // namespace tarn
