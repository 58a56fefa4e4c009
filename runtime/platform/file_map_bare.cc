// No files: models come from memory.
#include "runtime/platform/file_map.h"

namespace tarn {

FileMap::~FileMap() = default;

Result<FileMap> FileMap::Open(const char* path) {
  return Error(TARN_UNSUPPORTED, "%s: this build has no files: set source.buffer", path);
}

Result<FileMap> FileMap::FromDescriptor(int fd, uint64_t, uint64_t) {
  return Error(TARN_UNSUPPORTED, "fd %d: this build has no files: set source.buffer", fd);
}

void FileMap::Forget(Span<const uint8_t>) const {}

}  // namespace tarn
