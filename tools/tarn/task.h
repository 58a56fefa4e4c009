// What a model is for, and which commands and options fit it.
#ifndef TARN_TOOLS_TARN_TASK_H_
#define TARN_TOOLS_TARN_TASK_H_

#include <tarn/tarn.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/tarn/model.h"

namespace tarn_cli {

// "causal_lm", as config.json has it.
const char* TaskName(tarn_task task);

// Throws Failure if `command` does not work on such models: one line with the task found, those wanted and the command to use.
void RequireTask(const Model& model, const std::string& command, std::initializer_list<tarn_task> wanted);

// Options of a command that only models of some tasks take: which model it is shows after the command line was read.
class TaskOptions {
 public:
  // `option` was just added.
  void Only(std::initializer_list<tarn_task> tasks, const Option* option);
  // Throws UsageError with the first option that was given and does not fit.
  void Check(const std::string& command, tarn_task task) const;

 private:
  struct Entry {
    const Option* option;
    std::vector<tarn_task> tasks;
  };
  std::vector<Entry> entries_;
};

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_TASK_H_
