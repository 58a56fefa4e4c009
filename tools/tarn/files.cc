#include "tools/tarn/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

OutputFile::OutputFile(const std::string& path) : path_(path), written_path_(path) {
  struct stat existing;
  const bool in_place = lstat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
  if (!in_place) written_path_ += ".tmp" + std::to_string(getpid());
  file_ = std::fopen(written_path_.c_str(), in_place ? "wb" : "wbx");
  if (file_ == nullptr) Fail("cannot create");
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (file_ != nullptr && written_path_ != path_) unlink(written_path_.c_str());
}

void OutputFile::Write(const void* data, size_t size_bytes) {
  if (std::fwrite(data, 1, size_bytes, file_) != size_bytes) Fail("cannot write");
}

void OutputFile::Commit() {
  if (std::fflush(file_) != 0) Fail("cannot write");
  if (written_path_ != path_ && std::rename(written_path_.c_str(), path_.c_str()) != 0) Fail("cannot rename to its final name");
  std::FILE* file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) Fail("cannot write");
}

void OutputFile::Fail(const char* what) { throw Failure(path_ + ": " + what + ": " + std::strerror(errno)); }

bool WriteStdout(const void* data, size_t size_bytes) {
  errno = 0;
  if (std::fwrite(data, 1, size_bytes, stdout) == size_bytes && std::fflush(stdout) == 0) return true;
  if (errno == EPIPE) return false;
  throw Failure(std::string("cannot write to standard output: ") + std::strerror(errno));
}

bool WriteStdout(const std::string& text) { return WriteStdout(text.data(), text.size()); }

}  // namespace tarn_cli
