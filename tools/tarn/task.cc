#include "tools/tarn/task.h"

#include <algorithm>

#include "tools/common/command_line.h"
#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

// Everything that differs by task alone.
struct TaskFacts {
  const char* name;
  const char* command;  // what people most likely want
};

TaskFacts FactsOf(tarn_task task) {
  switch (task) {
    case TARN_TASK_CAUSAL_LM:
      return {"causal_lm", "run"};
    case TARN_TASK_SEQ2SEQ:
      return {"seq2seq", "run"};
    case TARN_TASK_CLASSIFICATION:
      return {"classification", "classify"};
    case TARN_TASK_MASKED_LM:
      return {"masked_lm", "fill"};
  }
  return {"unknown", "inspect"};
}

template <typename Tasks>
std::string Names(const Tasks& tasks) {
  std::string names;
  for (const tarn_task task : tasks) names += (names.empty() ? "" : " or ") + std::string(TaskName(task));
  return names;
}

}  // namespace

const char* TaskName(tarn_task task) { return FactsOf(task).name; }

void RequireTask(const Model& model, const std::string& command, std::initializer_list<tarn_task> wanted) {
  const tarn_task task = model.info().task;
  if (std::find(wanted.begin(), wanted.end(), task) != wanted.end()) return;
  throw Failure(command + ": the task of " + model.path() + " is " + TaskName(task) + ", expected " + Names(wanted) +
                ": use `tarn " + FactsOf(task).command + "`");
}

void TaskOptions::Only(std::initializer_list<tarn_task> tasks, const Option* option) { entries_.push_back({option, tasks}); }

void TaskOptions::Check(const std::string& command, tarn_task task) const {
  for (const Entry& entry : entries_) {
    if (entry.option->empty() || std::find(entry.tasks.begin(), entry.tasks.end(), task) != entry.tasks.end()) continue;
    throw UsageError(command + ": " + entry.option->get_name() + " is for " + Names(entry.tasks) + " models, this one is " +
                     TaskName(task));
  }
}

}  // namespace tarn_cli
