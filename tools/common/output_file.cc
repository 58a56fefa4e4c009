#include "tools/common/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tools/common/failure.h"

namespace tarn::tools {
namespace {

bool SameFile(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// `existing` is what `path` leads to.
void CheckReplaceable(const std::string& path, const struct stat& existing, const std::vector<std::string>& inputs) {
  struct stat other;
  for (const std::string& input : inputs) {
    if (stat(input.c_str(), &other) == 0 && SameFile(existing, other)) {
      throw Failure(path + ": is an input of this command, and would be overwritten");
    }
  }
  if (!S_ISREG(existing.st_mode)) throw Failure(path + ": exists and is not a regular file");
  if (fstat(STDOUT_FILENO, &other) == 0 && SameFile(existing, other)) {
    throw Failure(path + ": is where standard output goes, and would be overwritten");
  }
}

// Who may read the old file may read the new one. Where the group cannot be kept, no other group gets its rights.
void KeepAccess(const struct stat& existing, int file) {
  const bool kept =
      fchown(file, existing.st_uid, existing.st_gid) == 0 || fchown(file, static_cast<uid_t>(-1), existing.st_gid) == 0;
  static_cast<void>(fchmod(file, existing.st_mode & (kept ? 0777 : 0707)));
}

}  // namespace

OutputFile::OutputFile(const std::string& path, const std::vector<std::string>& inputs, std::string name, Links links)
    : name_(std::move(name)), final_(path) {
  struct stat existing;
  const bool replaces = links == Links::kFollow && stat(path.c_str(), &existing) == 0;
  if (replaces) {
    CheckReplaceable(path, existing, inputs);
    std::error_code error;
    const std::filesystem::path target = std::filesystem::canonical(path, error);
    if (!error) final_ = target.string();
  } else if (struct stat link; links == Links::kFollow && lstat(path.c_str(), &link) == 0) {
    throw Failure(name_ + ": is a link to a file that does not exist, expected a file or a new name");
  }
  // A process that was killed may have left a file, and another one may have its number: in containers many are process 1.
  constexpr int kMostLeft = 100;
  const std::string own = final_ + ".tmp." + std::to_string(getpid());
  for (int i = 0; file_ == nullptr && i < kMostLeft; ++i) {
    temporary_ = i == 0 ? own : own + "-" + std::to_string(i);
    file_ = std::fopen(temporary_.c_str(), "wbx");
    if (file_ == nullptr && errno != EEXIST) break;
  }
  if (file_ == nullptr) throw Failure(name_ + ": cannot be created: " + std::strerror(errno));
  removed_.emplace(temporary_);
  std::setvbuf(file_, buffer_.data(), _IOFBF, buffer_.size());
  if (replaces) KeepAccess(existing, fileno(file_));
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  unlink(temporary_.c_str());
}

void OutputFile::FailWriting() const { throw Failure(name_ + ": cannot be written: " + std::strerror(errno)); }

void OutputFile::Write(const void* bytes, size_t count) {
  if (std::fwrite(bytes, 1, count, file_) != count) FailWriting();
}

void OutputFile::Rewrite(size_t at, const void* bytes, size_t count) {
  if (std::fseek(file_, static_cast<long>(at), SEEK_SET) != 0) FailWriting();
  Write(bytes, count);
  if (std::fseek(file_, 0, SEEK_END) != 0) FailWriting();
}

const std::string& OutputFile::Flush() {
  if (std::fflush(file_) != 0) FailWriting();
  return temporary_;
}

void OutputFile::Commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) FailWriting();
  if (std::rename(temporary_.c_str(), final_.c_str()) != 0) FailWriting();
  std::fclose(file_);  // everything is on the disk: nothing is left that could fail
  file_ = nullptr;
  // The new name is on the disk when the directory is. A system that cannot do this has done its best.
  const size_t slash = final_.rfind('/');
  const int folder = open(slash == std::string::npos ? "." : final_.substr(0, slash + 1).c_str(), O_RDONLY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

}  // namespace tarn::tools
