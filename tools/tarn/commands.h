// The subcommands. Each adds itself to the parser and, once chosen, leaves in `*command` what is to be done: a function that
// returns the exit status, or throws.
#ifndef TARN_TOOLS_TARN_COMMANDS_H_
#define TARN_TOOLS_TARN_COMMANDS_H_

#include <functional>

#include "tools/common/command_line.h"

namespace tarn_cli {

using tarn::tools::App;

using Command = std::function<int()>;

void AddRun(App* app, Command* command);
void AddClassify(App* app, Command* command);
void AddFill(App* app, Command* command);
void AddEval(App* app, Command* command);
void AddBench(App* app, Command* command);
void AddTokenize(App* app, Command* command);
void AddInspect(App* app, Command* command);
void AddState(App* app, Command* command);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_COMMANDS_H_
