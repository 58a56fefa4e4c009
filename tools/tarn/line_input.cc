#include "tools/tarn/line_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "tools/common/signals.h"
#include "tools/tarn/environment.h"
#include "tools/tarn/error.h"
#include "tools/tarn/line_editor.h"

namespace tarn_cli {
namespace {

// Lines as they come: of a pipe, a file, or a terminal that can do nothing.
class PlainLines : public LineInput {
 public:
  End Read(const std::string& prompt, std::string* line) override {
    if (isatty(STDIN_FILENO) == 1) std::fputs(prompt.c_str(), stderr);
    const InputBytes input;
    for (;;) {
      const size_t end = bytes_.find('\n', searched_);
      if (end != std::string::npos) return Take(end, end + 1, line);
      searched_ = bytes_.size();
      if (at_end_) return bytes_.empty() ? End::kEndOfInput : Take(bytes_.size(), bytes_.size(), line);
      if (tarn::tools::Interrupted()) return End::kSignal;
      at_end_ = input.Wait(&bytes_) == InputBytes::Got::kEnd;
    }
  }

 private:
  End Take(size_t end, size_t next, std::string* line) {
    *line = bytes_.substr(0, end);
    if (!line->empty() && line->back() == '\r') line->pop_back();
    bytes_.erase(0, next);
    searched_ = 0;
    return End::kLine;
  }

  std::string bytes_;
  size_t searched_ = 0;  // where no line ends
  bool at_end_ = false;
};

}  // namespace

InputBytes::InputBytes() {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT}) sigaddset(&blocked, signal);
  sigprocmask(SIG_BLOCK, &blocked, &before_);
}

InputBytes::~InputBytes() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

InputBytes::Got InputBytes::Wait(std::string* bytes) const {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  if (ppoll(&input, 1, nullptr, &before_) < 0) {
    if (errno == EINTR) return Got::kSignal;
    throw Failure(std::string("standard input: cannot wait for it: ") + std::strerror(errno));
  }
  char buffer[1 << 16];
  const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
  if (size > 0) {
    bytes->append(buffer, static_cast<size_t>(size));
    return Got::kBytes;
  }
  if (size == 0 || errno == EIO) return Got::kEnd;  // EIO: the terminal is gone
  if (errno == EINTR || errno == EAGAIN) return Got::kSignal;
  throw Failure(std::string("standard input: cannot read: ") + std::strerror(errno));
}

std::unique_ptr<LineInput> LineInput::Create() {
  const bool can_edit = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 && Environment("TERM") != "dumb";
  if (can_edit) return std::make_unique<LineEditor>();
  return std::make_unique<PlainLines>();
}

}  // namespace tarn_cli
