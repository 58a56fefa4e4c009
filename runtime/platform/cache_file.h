// A file that is made once and then only read, by this process and by others. It is mapped shared: its pages are clean once they
// are on the disk, all processes share them, and none of them is anybody's anonymous memory.
//
// Create() maps a temporary file of the full size, which the caller fills; Publish() gives it its name. Processes that make the
// same file at the same time make one each, and the last to publish wins; whoever has mapped another keeps that. A published file
// is never written again, only replaced.
//
// A cache is not needed: where something does not work there is no file, and the caller goes on without one. Nothing is an error.
#ifndef TARN_RUNTIME_PLATFORM_CACHE_FILE_H_
#define TARN_RUNTIME_PLATFORM_CACHE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/span.h"
#include "runtime/platform/file_identity.h"

namespace tarn {

class CacheFile {
 public:
  CacheFile() = default;
  CacheFile(CacheFile&& other) noexcept { *this = std::move(other); }
  CacheFile& operator=(CacheFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(folder_, other.folder_);
    std::swap(file_, other.file_);
    std::swap(temporary_, other.temporary_);
    std::swap(identity_, other.identity_);
    return *this;
  }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;
  ~CacheFile();

  // The file of that name, read-only. None unless it is a regular file of exactly `size_bytes` that belongs to this user or to
  // root: others could cut it while it is mapped.
  static CacheFile Open(const char* folder, const char* name, uint64_t size_bytes);

  // Whether Create() would work now, as far as that can be known: changes nothing.
  static bool CanCreate(const char* folder, uint64_t size_bytes);

  // A temporary file, all zero, to be written through writable(). Its blocks are reserved, so that a full disk is noticed here and
  // not as SIGBUS. Makes the folder (mode 0700) if its parent is there, and removes temporary files whose makers are gone.
  static CacheFile Create(const char* folder, const char* name, uint64_t size_bytes);

  bool exists() const { return bytes_.data() != nullptr; }
  Span<const uint8_t> bytes() const { return bytes_; }
  Span<uint8_t> writable() { return bytes_; }  // between Create() and Publish()
  // Of a file that was opened, or got its name; else not known.
  const FileIdentity& identity() const { return identity_; }

  // Waits until everything that was written is on the disk. False: it is not.
  bool Sync() const;

  // Gives the file its name, in place of another of that name, and makes the mapping read-only. Where that fails the file has no
  // name, and stays mapped all the same.
  void Publish(const char* name);
  // Instead of Publish(): the file has no name, and goes with the mapping.
  void KeepUnnamed();

 private:
  static constexpr size_t kMaxName = 160;

  bool CreateTemporary(const char* name);
  bool Map(uint64_t size_bytes, int protection);
  void CloseFiles();

  Span<uint8_t> bytes_;
  // Until it is published: a lock on the file says that its maker lives.
  int folder_ = -1;
  int file_ = -1;
  char temporary_[kMaxName] = "";
  FileIdentity identity_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_PLATFORM_CACHE_FILE_H_
