// The subcommands. Each adds itself to the parser and, once chosen, leaves in `*command` what is to be done: a function that
// returns the exit status, or throws.
#ifndef TARN_TOOLS_TARN_COMMANDS_H_
#define TARN_TOOLS_TARN_COMMANDS_H_

#include <functional>

namespace CLI {
class App;
}

namespace tarn_cli {

using Command = std::function<int()>;

void AddRun(CLI::App* app, Command* command);
void AddClassify(CLI::App* app, Command* command);
void AddFill(CLI::App* app, Command* command);
void AddEval(CLI::App* app, Command* command);
void AddBench(CLI::App* app, Command* command);
void AddTokenize(CLI::App* app, Command* command);
void AddInspect(CLI::App* app, Command* command);
void AddState(CLI::App* app, Command* command);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_COMMANDS_H_
