#include "tools/tarn/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/tarn/error.h"

namespace tarn_cli {

std::string ReadFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw Failure(path + ": cannot open: " + std::strerror(errno));
  std::string content;
  char buffer[1 << 16];
  size_t size;
  while ((size = std::fread(buffer, 1, sizeof(buffer), file)) > 0) content.append(buffer, size);
  const bool failed = std::ferror(file) != 0;
  const std::string reason = failed ? std::strerror(errno) : "";
  std::fclose(file);
  if (failed) throw Failure(path + ": cannot read: " + reason);
  return content;
}

bool WriteStdout(const void* data, size_t size_bytes) {
  errno = 0;
  if (std::fwrite(data, 1, size_bytes, stdout) == size_bytes && std::fflush(stdout) == 0) return true;
  if (errno == EPIPE) return false;
  throw Failure(std::string("cannot write to standard output: ") + std::strerror(errno));
}

bool WriteStdout(const std::string& text) { return WriteStdout(text.data(), text.size()); }

}  // namespace tarn_cli
