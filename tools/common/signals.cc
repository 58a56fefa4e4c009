#include "tools/common/signals.h"

#include <csignal>
#include <initializer_list>

namespace tarn::tools {
namespace {

volatile std::sig_atomic_t caught = 0;  // the first signal

// Waits for nobody: the second signal has its default effect as soon as this returns.
void OnSignal(int signal) {
  if (caught == 0) {
    caught = signal;
  } else {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESTART);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    const bool ignored = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (!ignored) sigaction(signal, &action, nullptr);
  }
}

bool Interrupted() { return caught != 0; }

int InterruptedExit() { return 128 + caught; }

void IgnoreWriteSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace tarn::tools
