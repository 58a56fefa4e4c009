#include "tools/tarn/files.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/tarn/error.h"

namespace tarn_cli {

namespace {

std::string ReadStdin() {
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    StopIfInterrupted();
    const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (size == 0) return content;
    if (size > 0) {
      content.append(buffer, static_cast<size_t>(size));
    } else if (errno == EAGAIN) {  // somebody who shares it does not want to wait
      struct pollfd input = {STDIN_FILENO, POLLIN, 0};
      poll(&input, 1, -1);
    } else if (errno != EINTR) {
      throw Failure(std::string("standard input: cannot read: ") + std::strerror(errno));
    }
  }
}

}  // namespace

std::string FileName(const std::string& path) { return path == "-" ? "standard input" : path; }

bool InputIsFed() {
  struct stat input;
  if (fstat(STDIN_FILENO, &input) != 0) return false;
  return S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode);
}

std::string ReadFile(const std::string& path) {
  if (path == "-") return ReadStdin();
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    const int error = errno;
    StopIfInterrupted();
    throw Failure(path + ": cannot open: " + std::strerror(error));
  }
  std::string content;
  char buffer[1 << 16];
  size_t size;
  while ((size = std::fread(buffer, 1, sizeof(buffer), file)) > 0) content.append(buffer, size);
  const bool failed = std::ferror(file) != 0;
  const std::string reason = failed ? std::strerror(errno) : "";
  std::fclose(file);
  StopIfInterrupted();
  if (failed) throw Failure(path + ": cannot read: " + reason);
  return content;
}

bool WriteStdout(const void* data, size_t size_bytes) {
  errno = 0;
  if (std::fwrite(data, 1, size_bytes, stdout) == size_bytes && std::fflush(stdout) == 0) return true;
  if (errno == EPIPE) {
    std::clearerr(stdout);  // a reader that has left is no failure: RunTool() looks at this at the end
    return false;
  }
  const int error = errno;
  StopIfInterrupted();
  throw Failure(std::string("cannot write to standard output: ") + std::strerror(error));
}

bool WriteStdout(const std::string& text) { return WriteStdout(text.data(), text.size()); }

}  // namespace tarn_cli
