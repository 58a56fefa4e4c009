#include "tools/convert/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/convert/error.h"

namespace tarn::convert {

void MemorySink::Write(const void* bytes, size_t count) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  bytes_.insert(bytes_.end(), begin, begin + count);
}

void MemorySink::Rewrite(size_t at, const void* bytes, size_t count) {
  const auto* begin = static_cast<const uint8_t*>(bytes);
  std::copy(begin, begin + count, bytes_.begin() + static_cast<std::ptrdiff_t>(at));
}

OutputFile::OutputFile(const std::string& path, const std::vector<std::string>& inputs)
    : path_(path), temporary_(path + ".tmp." + std::to_string(getpid())) {
  struct stat output;
  if (stat(path.c_str(), &output) == 0) {
    for (const std::string& input : inputs) {
      struct stat info;
      if (stat(input.c_str(), &info) == 0 && info.st_dev == output.st_dev && info.st_ino == output.st_ino) {
        Fail(path, ": is an input of this conversion, and would be overwritten");
      }
    }
    if (!S_ISREG(output.st_mode)) Fail(path, ": exists and is not a regular file");
  }
  file_ = std::fopen(temporary_.c_str(), "wbx");
  if (file_ == nullptr) Fail(temporary_, ": cannot be created: ", std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(temporary_.c_str());
}

void OutputFile::FailWriting() const { Fail(path_, ": cannot be written: ", std::strerror(errno)); }

void OutputFile::Write(const void* bytes, size_t count) {
  if (std::fwrite(bytes, 1, count, file_) != count) FailWriting();
}

void OutputFile::Rewrite(size_t at, const void* bytes, size_t count) {
  if (std::fseek(file_, static_cast<long>(at), SEEK_SET) != 0) FailWriting();
  Write(bytes, count);
  if (std::fseek(file_, 0, SEEK_END) != 0) FailWriting();
}

void OutputFile::Commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) FailWriting();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) FailWriting();
  std::fclose(file_);  // everything is on the disk: nothing is left that could fail
  file_ = nullptr;
  // The new name is on the disk when the folder is. A system that cannot do this has done its best.
  const size_t slash = path_.rfind('/');
  const int folder = open(slash == std::string::npos ? "." : path_.substr(0, slash + 1).c_str(), O_RDONLY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

}  // namespace tarn::convert
