#include "tools/convert/json/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "tools/convert/json/error.h"

namespace tarn::convert {
namespace {

constexpr std::string_view kLfsPointer = "version https://git-lfs";  // what a checkout without Git LFS has in place of a file

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // Not blocking: opening a FIFO would wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) Fail(path, ": cannot be opened: ", std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    Fail(path, S_ISDIR(info.st_mode) ? ": a directory, expected a file" : ": not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  void* bytes = size_ == 0 ? nullptr : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (bytes == MAP_FAILED) Fail(path, ": cannot be mapped: ", std::strerror(error));
  data_ = static_cast<const uint8_t*>(bytes);
  const std::string_view text(static_cast<const char*>(bytes), std::min(size_, kLfsPointer.size()));
  if (text == kLfsPointer) {
    munmap(bytes, size_);
    Fail(path, ": a Git LFS pointer, not the file: git lfs pull");
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::Release() const {
  if (data_ != nullptr) madvise(const_cast<uint8_t*>(data_), size_, MADV_DONTNEED);
}

std::string ReadFile(const std::string& path, uint64_t max_bytes) {
  const MappedFile file(path);
  if (file.size() > max_bytes) Fail(path, ": ", file.size(), " bytes, expected at most ", max_bytes);
  return std::string(reinterpret_cast<const char*>(file.data()), file.size());
}

}  // namespace tarn::convert
