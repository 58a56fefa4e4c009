#include "tools/common/tool_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "tools/common/failure.h"
#include "tools/common/printable.h"
#include "tools/common/signals.h"

namespace tarn::tools {
namespace {

void WriteError(const char* text) {
  // There is nobody left to tell that this failed.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

// Without an allocation.
void SayOutOfMemory() {
  for (const char* part : {kToolName, ": error: out of memory\n"}) WriteError(part);
}

// An exception that nobody can catch: of a constructor of a global object, or one for which there was no memory (there is none at
// all then, so none counts as that). Any other exception is a bug, and aborts.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
    } catch (...) {
      std::abort();
    }
  }
  SayOutOfMemory();
  _exit(kFailedExit);
}

// Before every global object of the other files: the command line parser has some that allocate.
struct TerminateHandler {
  TerminateHandler() { std::set_terminate(OnTerminate); }
};
__attribute__((init_priority(101))) const TerminateHandler terminate_handler;

// A file that is opened must not become standard output or error because that was closed. Reads and writes of these fail.
void OccupyStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void PrintError(const std::exception& error) {
  std::fprintf(stderr, "%s: error: %s\n", kToolName, ErrorLine(error.what()).c_str());
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) {
    for (const std::string& line : failure->details()) std::fprintf(stderr, "  %s\n", ErrorLine(line).c_str());
  }
}

void FlushStandardOutput() {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  // A text that is longer than the buffer failed before, and the reason is gone. Another write finds it again.
  if (failed && errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1) errno = 0;
  if (failed && errno != EPIPE) {
    throw Failure(std::string("cannot write to standard output") + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  }
}

}  // namespace

int RunTool(int (*run)(int argc, char** argv), int argc, char** argv) {
  OccupyStandardStreams();
  IgnoreWriteSignals();
  try {
    try {
      const int status = run(argc, argv);
      if (status == 0) FlushStandardOutput();
      return status;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      PrintError(error);
      const bool usage = dynamic_cast<const UsageFailure*>(&error) != nullptr;
      return Interrupted() ? InterruptedExit() : usage ? kUsageExit : kFailedExit;
    }
  } catch (const std::bad_alloc&) {  // of the tool, or of its error message
    SayOutOfMemory();
    return kFailedExit;
  }
}

}  // namespace tarn::tools
