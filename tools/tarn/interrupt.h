// Ctrl-C as a question that a loop may ask.
#ifndef TARN_TOOLS_TARN_INTERRUPT_H_
#define TARN_TOOLS_TARN_INTERRUPT_H_

namespace tarn_cli {

constexpr int kInterruptedExit = 130;  // 128 + SIGINT, as a shell reports it

// From here on the first Ctrl-C only sets what Interrupted() returns; the second one ends the process.
void CatchInterrupt();
bool Interrupted();

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_INTERRUPT_H_
