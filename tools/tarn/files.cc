#include "tools/tarn/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
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

// Empty: it cannot be mapped, and reading it says why.
std::string_view MapFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0) return {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const size_t size = static_cast<size_t>(info.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return {};
  madvise(mapped, size, MADV_SEQUENTIAL);
  return {static_cast<const char*>(mapped), size};
}

// Until standard output takes bytes. False: an end was asked for, and its reader does not read.
bool WaitForReader() {
  constexpr int kPatienceMs = 1000;
  for (;;) {
    struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
    const int ready = poll(&output, 1, kPatienceMs);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // write() says what is wrong
    if (ready == 0 && tarn::tools::InterruptedForGood()) return false;
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
  static bool reader_is_lost = false;  // what comes after a gap would be no part of the text
  const char* next = static_cast<const char*>(data);
  while (size_bytes > 0) {
    if (reader_is_lost || !WaitForReader()) {
      reader_is_lost = true;
      return false;
    }
    const ssize_t size = write(STDOUT_FILENO, next, std::min<size_t>(size_bytes, PIPE_BUF));  // so many do not block a pipe
    if (size >= 0) {
      next += size;
      size_bytes -= static_cast<size_t>(size);
    } else if (errno == EPIPE) {
      return false;
    } else if (errno != EINTR && errno != EAGAIN) {
      throw Failure(std::string("cannot write to standard output: ") + std::strerror(errno));
    }
  }
  return true;
}

bool WriteStdout(const std::string& text) { return WriteStdout(text.data(), text.size()); }

bool StdoutBuffer::Write() {
  const bool is_written = WriteStdout(text_);
  text_.clear();
  return is_written;
}

InputText InputText::OfFile(const std::string& path) {
  const std::string_view mapped = path == "-" ? std::string_view() : MapFile(path);
  return mapped.empty() ? InputText(ReadFile(path)) : InputText(mapped);
}

InputText::~InputText() {
  if (!mapped_.empty()) munmap(const_cast<char*>(mapped_.data()), mapped_.size());
}

void InputText::DropNewline() {
  for (const char last : {'\n', '\r'}) {
    if (text_.empty() || text_.back() != last) return;
    text_.remove_suffix(1);
  }
}

}  // namespace tarn_cli
