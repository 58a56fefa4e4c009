// Ends that come from outside the process.
#ifndef TARN_TOOLS_COMMON_SIGNALS_H_
#define TARN_TOOLS_COMMON_SIGNALS_H_

#include <tarn/tarn.h>

#include <cstddef>
#include <string>

namespace tarn::tools {

// From here on the first SIGINT (Ctrl-C), SIGTERM or SIGHUP only sets what Interrupted() returns, for loops to ask, and cancels the
// call of a session (below); a second one, of whatever kind, ends the process at once. What was ignored before (nohup) stays
// ignored.
void CatchInterrupts();
bool Interrupted();

// From here on Ctrl-C is a question of the user's and ends nothing, however often it comes: Interrupted() says that it came, until
// ForgetCtrlC(). Another signal after it takes its place.
void AskAtCtrlC();
void ForgetCtrlC();
// Whether Ctrl-C is what interrupted.
bool InterruptedByCtrlC();
// Whether what waits for somebody else has to end: it was interrupted, and where Ctrl-C is a question, twice since ForgetCtrlC().
bool InterruptedForGood();

// `restore` is called before a signal ends the process at once, SIGQUIT (Ctrl-\) too, and is safe in a handler. nullptr: none.
void AtSuddenEnd(void (*restore)());

// A file that is not complete. A second signal, which ends the process at once, removes it while this exists; so of 8 files at
// most.
class RemovedAtSuddenEnd {
 public:
  explicit RemovedAtSuddenEnd(const std::string& path);
  ~RemovedAtSuddenEnd();
  RemovedAtSuddenEnd(const RemovedAtSuddenEnd&) = delete;
  RemovedAtSuddenEnd& operator=(const RemovedAtSuddenEnd&) = delete;

 private:
  const std::string path_;
  size_t place_ = 0;
};

// 128 + the signal, as a shell reports it: 130 after Ctrl-C. Only if Interrupted().
int InterruptedExit();

// The first signal, also one that came before, stops the call that runs on `session`, or else the next one (tarn_session_cancel()).
// One session at a time: another takes the place of the last. session.h does it for every session of the tools.
void CancelWhenInterrupted(tarn_session* session);
// `session` may be destroyed when this returns: no handler has it any more.
void DoNotCancel(tarn_session* session);

// A closed pipe and a limit on the size of files are errors of a write, not the end of the process.
void IgnoreWriteSignals();

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_SIGNALS_H_
