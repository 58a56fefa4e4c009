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
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tools/tarn/error.h"

namespace tarn_cli {

namespace {

constexpr size_t kHeldBytes = size_t{1} << 20;  // of standard input: what is longer goes to a file
constexpr size_t kReadAtOnce = size_t{1} << 16;

// A descriptor that is closed, or -1.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Empty: it cannot be mapped, and reading it says why.
std::string_view MapFile(int file) {
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0) return {};
  const size_t size = static_cast<size_t>(info.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) return {};
  madvise(mapped, size, MADV_SEQUENTIAL);
  return {static_cast<const char*>(mapped), size};
}

std::string TemporaryFolder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && folder[0] != '\0' ? folder : "/tmp";
}

// A file that goes when it is closed; -1: there is no place for one.
int OpenTemporaryFile() {
  std::string path = TemporaryFolder() + "/tarn-XXXXXX";
  const int file = mkstemp(path.data());
  if (file >= 0) unlink(path.c_str());
  return file;
}

void WriteTemporary(int file, const char* data, size_t size_bytes) {
  while (size_bytes > 0) {
    const ssize_t size = write(file, data, size_bytes);
    if (size > 0) {
      data += size;
      size_bytes -= static_cast<size_t>(size);
    } else if (size == 0 || errno != EINTR) {
      throw Failure("standard input: cannot keep it in a file in " + TemporaryFolder() + ": " + std::strerror(errno) +
                    "; TMPDIR can name another directory");
    }
  }
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

size_t ReadStdin(char* buffer, size_t size_bytes) {
  for (;;) {
    StopIfInterrupted();
    const ssize_t size = read(STDIN_FILENO, buffer, size_bytes);
    if (size >= 0) return static_cast<size_t>(size);
    if (errno == EAGAIN) {  // somebody who shares it does not want to wait
      struct pollfd input = {STDIN_FILENO, POLLIN, 0};
      poll(&input, 1, -1);
    } else if (errno != EINTR) {
      throw Failure(std::string("standard input: cannot read: ") + std::strerror(errno));
    }
  }
}

std::string ReadFile(const std::string& path, size_t most_bytes) {
  std::string content;
  char buffer[kReadAtOnce];
  size_t size;
  const auto check = [&] {
    if (content.size() <= most_bytes) return;
    throw Failure(FileName(path) + ": more than " + std::to_string(most_bytes) + " bytes, at most so many expected");
  };
  if (path == "-") {
    while ((size = ReadStdin(buffer, sizeof(buffer))) > 0) {
      content.append(buffer, size);
      check();
    }
    return content;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(path.c_str(), "rb"), std::fclose);
  std::FILE* const file = opened.get();
  if (file == nullptr) {
    const int error = errno;
    StopIfInterrupted();
    throw Failure(path + ": cannot open: " + std::strerror(error));
  }
  while (content.size() <= most_bytes && (size = std::fread(buffer, 1, sizeof(buffer), file)) > 0) {
    StopIfInterrupted();
    content.append(buffer, size);
  }
  const int error = errno;
  StopIfInterrupted();
  if (std::ferror(file) != 0) throw Failure(path + ": cannot read: " + std::strerror(error));
  check();
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
      throw OutputFailure(std::string("cannot write to standard output: ") + std::strerror(errno));
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
  if (path == "-") return OfStdin();
  struct stat info;
  // A pipe is opened once, by who reads it.
  const bool regular = stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  const OpenFile file(regular ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  const std::string_view mapped = file.get() < 0 ? std::string_view() : MapFile(file.get());
  return mapped.empty() ? InputText(ReadFile(path)) : InputText(mapped, 0);
}

InputText InputText::OfStdin() {
  const off_t begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
  if (begin >= 0) {
    const std::string_view mapped = MapFile(STDIN_FILENO);
    if (!mapped.empty()) {
      lseek(STDIN_FILENO, 0, SEEK_END);  // as if it had been read
      return InputText(mapped, std::min(static_cast<size_t>(begin), mapped.size()));
    }
  }
  std::string held;
  char buffer[kReadAtOnce];
  size_t size = 1;
  while (size > 0 && held.size() < kHeldBytes) held.append(buffer, size = ReadStdin(buffer, sizeof(buffer)));
  if (size == 0) return InputText(std::move(held));
  const OpenFile file(OpenTemporaryFile());
  if (file.get() < 0) {
    while ((size = ReadStdin(buffer, sizeof(buffer))) > 0) held.append(buffer, size);
    return InputText(std::move(held));
  }
  WriteTemporary(file.get(), held.data(), held.size());
  while ((size = ReadStdin(buffer, sizeof(buffer))) > 0) WriteTemporary(file.get(), buffer, size);
  const std::string_view mapped = MapFile(file.get());
  if (mapped.empty()) throw Failure(std::string("standard input: cannot map the file that keeps it: ") + std::strerror(errno));
  return InputText(mapped, 0);
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
