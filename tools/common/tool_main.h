// What the main() of every tool shares: however a tool ends, it is an exit status and, after a failure, one line on standard error.
#ifndef TARN_TOOLS_COMMON_TOOL_MAIN_H_
#define TARN_TOOLS_COMMON_TOOL_MAIN_H_

namespace tarn::tools {

constexpr int kFailedExit = 1;
constexpr int kUsageExit = 2;

// The name that begins a tool's errors. Each tool defines it, as a constant: memory may run out before main() begins.
extern const char kToolName[];

// Calls run(argc, argv) and returns what main() is to return: its status; kFailedExit or 128 + the signal after an exception, whose
// message (and details, of a Failure) goes to standard error; kFailedExit if memory ran out, wherever it did; kFailedExit instead
// of 0 if standard output could not be written. A pipe whose reader has left is no failure.
int RunTool(int (*run)(int argc, char** argv), int argc, char** argv);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_TOOL_MAIN_H_
