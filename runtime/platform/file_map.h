// Read-only mapping of a file, or of a part of one.
#ifndef TARN_RUNTIME_PLATFORM_FILE_MAP_H_
#define TARN_RUNTIME_PLATFORM_FILE_MAP_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/result.h"
#include "core/span.h"
#include "runtime/platform/file_identity.h"

namespace tarn {

class FileMap {
 public:
  FileMap() = default;
  FileMap(FileMap&& other) noexcept { *this = std::move(other); }
  FileMap& operator=(FileMap&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(base_bytes_, other.base_bytes_);
    std::swap(bytes_, other.bytes_);
    std::swap(identity_, other.identity_);
    return *this;
  }
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  // Errors: TARN_NOT_FOUND, TARN_IO (a folder, no permission, ...), TARN_BAD_FORMAT (empty).
  static Result<FileMap> Open(const char* path);

  // `offset_bytes` may have any alignment: whole pages around the range are mapped. `length_bytes` 0: to the end of the file.
  // The descriptor is not kept.
  static Result<FileMap> FromDescriptor(int fd, uint64_t offset_bytes, uint64_t length_bytes);

  Span<const uint8_t> bytes() const { return bytes_; }
  // Of the file, with the part of it that is mapped, as it was before it was read.
  const FileIdentity& identity() const { return identity_; }

  // Tells the system that `range` will not be read soon: its clean pages stop counting as resident. A range that is not inside
  // bytes() (a copy, say) is left alone: what is not backed by the file would be lost.
  void Forget(Span<const uint8_t> range) const;

 private:
  void* base_ = nullptr;  // page-aligned
  size_t base_bytes_ = 0;
  Span<const uint8_t> bytes_;
  FileIdentity identity_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_FILE_MAP_H_
