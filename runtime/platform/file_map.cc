#include "runtime/platform/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tarn {
namespace {

// The system's, never a constant: 4 KiB, 16 KiB and 64 KiB kernels are all in use on ARM.
uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

const char* Reason(int error, char* buffer, size_t buffer_bytes) {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
  return strerror_r(error, buffer, buffer_bytes);
#else
  return strerror_r(error, buffer, buffer_bytes) == 0 ? buffer : "unknown error";
#endif
}

}  // namespace

FileMap::~FileMap() {
  if (base_ != nullptr) munmap(base_, base_bytes_);
}

Result<FileMap> FileMap::Open(const char* path) {
  char reason[96];
  // Not blocking: opening a FIFO would otherwise wait for a writer. What is not a regular file is refused below.
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    const tarn_status code = error == ENOENT || error == ENOTDIR ? TARN_NOT_FOUND : TARN_IO;
    return Error(code, "%s: %s", path, Reason(error, reason, sizeof(reason)));
  }
  Result<FileMap> map = FromDescriptor(fd, 0, 0);
  close(fd);
  if (!map.ok()) return map.status().In("%s", path);
  return map;
}

Result<FileMap> FileMap::FromDescriptor(int fd, uint64_t offset_bytes, uint64_t length_bytes) {
  char reason[96];
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return Error(TARN_IO, "file descriptor %d: %s", fd, Reason(errno, reason, sizeof(reason)));
  }
  if (S_ISDIR(info.st_mode)) return Error(TARN_IO, "a directory, not a model file; tarn-convert makes one of a checkpoint");
  if (!S_ISREG(info.st_mode)) return Error(TARN_IO, "not a regular file");
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  if (file_bytes == 0) return Error(TARN_BAD_FORMAT, "file is empty: copy it again");
  if (offset_bytes >= file_bytes || length_bytes > file_bytes - offset_bytes) {
    return Error(TARN_INVALID_ARGUMENT, "offset %llu and length %llu do not lie inside the file's %llu bytes",
                 static_cast<unsigned long long>(offset_bytes), static_cast<unsigned long long>(length_bytes),
                 static_cast<unsigned long long>(file_bytes));
  }
  if (length_bytes == 0) length_bytes = file_bytes - offset_bytes;
  const uint64_t lead = offset_bytes % PageBytes();
  if (length_bytes + lead > SIZE_MAX) return Error(TARN_OUT_OF_MEMORY, "file is larger than the address space");

  FileMap map;
  map.identity_ = IdentityOf(fd);
  map.identity_.offset_bytes = offset_bytes;
  map.identity_.length_bytes = length_bytes;
  map.base_bytes_ = static_cast<size_t>(length_bytes + lead);
  void* base = mmap(nullptr, map.base_bytes_, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset_bytes - lead));
  if (base == MAP_FAILED) {
    return Error(TARN_IO, "cannot map %llu bytes: %s", static_cast<unsigned long long>(length_bytes),
                 Reason(errno, reason, sizeof(reason)));
  }
  map.base_ = base;
  map.bytes_ = {static_cast<const uint8_t*>(base) + lead, static_cast<size_t>(length_bytes)};
  return map;
}

void FileMap::Forget(Span<const uint8_t> range) const {
  if (range.begin() < bytes_.begin() || range.end() > bytes_.end()) return;
  const uint64_t page = PageBytes();
  const uint64_t first = (reinterpret_cast<uintptr_t>(range.begin()) + page - 1) / page * page;
  const uint64_t last = reinterpret_cast<uintptr_t>(range.end()) / page * page;
  if (base_ == nullptr || first >= last) return;
  madvise(reinterpret_cast<void*>(static_cast<uintptr_t>(first)), static_cast<size_t>(last - first), MADV_DONTNEED);
}

}  // namespace tarn
