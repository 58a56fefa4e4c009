#include "tools/common/signals.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <initializer_list>
#include <iterator>

namespace tarn::tools {
namespace {

std::atomic<int> caught = 0;  // the first signal
std::atomic<bool> asks_at_ctrl_c = false;
std::atomic<bool> ctrl_c_again = false;
std::atomic<void (*)()> at_sudden_end = nullptr;
std::atomic<tarn_session*> to_cancel = nullptr;  // at it
std::atomic<int> handlers = 0;                   // that run now, and may have read `to_cancel`
std::atomic<const char*> unfinished[8] = {};     // files to remove at a sudden end
std::atomic<bool> is_ending = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<tarn_session*>::is_always_lock_free, "for signal handlers");

// Does not return. Process 1 of a container gets no signal whose effect is the default one: it exits.
void EndAtOnce(int signal) {
  is_ending = true;
  for (const std::atomic<const char*>& file : unfinished) {
    if (const char* const path = file) unlink(path);
  }
  if (void (*const restore)() = at_sudden_end) restore();
  std::signal(signal, SIG_DFL);
  sigset_t it;
  sigemptyset(&it);
  sigaddset(&it, signal);
  pthread_sigmask(SIG_UNBLOCK, &it, nullptr);
  raise(signal);
  _exit(128 + signal);
}

// Waits for nobody.
void OnSignal(int signal) {
  int none = 0, ctrl_c = SIGINT;
  if (asks_at_ctrl_c && caught.compare_exchange_strong(ctrl_c, signal)) {
    ctrl_c_again = true;
    return;
  }
  if (caught.compare_exchange_strong(none, signal)) {
    ++handlers;
    tarn_session_cancel(to_cancel);
    --handlers;
  } else {
    EndAtOnce(signal);
  }
}

bool IsIgnored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};  // without SA_RESTART: a file or a pipe that nobody serves is not waited for any longer
  action.sa_handler = OnSignal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!IsIgnored(signal)) sigaction(signal, &action, nullptr);
  }
}

bool Interrupted() { return caught != 0; }

void AskAtCtrlC() { asks_at_ctrl_c = true; }

void ForgetCtrlC() {
  ctrl_c_again = false;
  int ctrl_c = SIGINT;
  caught.compare_exchange_strong(ctrl_c, 0);
}

bool InterruptedByCtrlC() { return caught == SIGINT; }

bool InterruptedForGood() { return Interrupted() && (!asks_at_ctrl_c || !InterruptedByCtrlC() || ctrl_c_again); }

void AtSuddenEnd(void (*restore)()) {
  at_sudden_end = restore;
  if (!IsIgnored(SIGQUIT)) std::signal(SIGQUIT, EndAtOnce);
}

RemovedAtSuddenEnd::RemovedAtSuddenEnd(const std::string& path) : path_(path) {
  const char* none = nullptr;
  while (place_ < std::size(unfinished) && !unfinished[place_].compare_exchange_strong(none, path_.c_str())) {
    none = nullptr;
    ++place_;
  }
}

RemovedAtSuddenEnd::~RemovedAtSuddenEnd() {
  if (place_ == std::size(unfinished)) return;
  unfinished[place_] = nullptr;
  while (is_ending) sched_yield();  // a handler on another thread may still read the path; the process ends with it
}

int InterruptedExit() { return 128 + caught; }

void CancelWhenInterrupted(tarn_session* session) {
  to_cancel = session;
  // A handler that ran before has found another.
  if (Interrupted()) tarn_session_cancel(session);
}

void DoNotCancel(tarn_session* session) {
  to_cancel.compare_exchange_strong(session, nullptr);
  // One that runs on this thread has ended before this line goes on.
  while (handlers != 0) sched_yield();
}

void IgnoreWriteSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace tarn::tools
