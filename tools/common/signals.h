// Ends that come from outside the process.
#ifndef TARN_TOOLS_COMMON_SIGNALS_H_
#define TARN_TOOLS_COMMON_SIGNALS_H_

namespace tarn::tools {

// From here on the first SIGINT (Ctrl-C), SIGTERM or SIGHUP only sets what Interrupted() returns, for loops to ask; a second one,
// of whatever kind, ends the process at once. What was ignored before (nohup) stays ignored.
void CatchInterrupts();
bool Interrupted();
// 128 + the signal, as a shell reports it: 130 after Ctrl-C. Only if Interrupted().
int InterruptedExit();

// A closed pipe and a limit on the size of files are errors of a write, not the end of the process.
void IgnoreWriteSignals();

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_SIGNALS_H_
