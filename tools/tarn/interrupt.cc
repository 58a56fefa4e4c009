#include "tools/tarn/interrupt.h"

#include <csignal>

namespace tarn_cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

void CatchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace tarn_cli
