// Options of other programs that people type from habit, and what they mean here.
#ifndef TARN_TOOLS_TARN_HABITS_H_
#define TARN_TOOLS_TARN_HABITS_H_

#include <string>
#include <vector>

#include "tools/common/command_line.h"

namespace tarn_cli {

// One line for the first such option among the arguments of a command line that the parser `app` refused; "" if there is none.
std::string HabitAnswer(const tarn::tools::App& app, const std::vector<std::string>& arguments);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_HABITS_H_
