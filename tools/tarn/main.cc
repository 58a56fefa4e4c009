// tarn: the command line. Parses, runs one subcommand, and turns every failure into one line and an exit status:
// 0 done, 1 failed, 2 wrong command line, 128 + signal: interrupted.
#include <tarn/tarn.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/command_line.h"
#include "tools/common/printable.h"
#include "tools/common/signals.h"
#include "tools/common/suggestion.h"
#include "tools/common/tool_main.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"
#include "tools/tarn/habits.h"

const char tarn::tools::kToolName[] = "tarn";

namespace tarn_cli {
namespace {

int ComplainOfUsage(const std::string& message) {
  std::fprintf(stderr, "tarn: error: %s\n", tarn::tools::ErrorLine(message).c_str());
  std::fprintf(stderr, "`tarn help` and `tarn help COMMAND` say more\n");
  return tarn::tools::kUsageExit;
}

// Throws UsageError if there is no such subcommand.
const App* FindCommand(const App& app, const std::string& name) {
  const App* command = app.find_subcommand(name);
  if (command == nullptr) throw UsageError("the command " + tarn::tools::UnknownName(name, app.subcommands()));
  return command;
}

// `tarn help` is `tarn --help`, `tarn help COMMAND` is `tarn COMMAND --help`.
void AddHelp(App* app, Command* command) {
  App* help = app->add_subcommand("help", "Show the help of a command");
  const auto name = std::make_shared<std::string>();
  help->add_option("command", *name, "Command to explain (default: a summary of all)")->type_name("NAME");
  help->footer(
      "Examples:\n"
      "  tarn help\n"
      "  tarn help run");
  help->callback([=] {
    *command = [=] {
      WriteStdout((name->empty() ? app : FindCommand(*app, *name))->help());
      return 0;
    };
  });
}

// Throws UsageError as well as what the command throws.
int ParseAndRun(int argc, char** argv) {
  App app("Runs sequence models whose memory does not grow while they generate.", "tarn");
  app.set_version_flag("--version", std::string("tarn ") + tarn_version());
  app.require_subcommand();
  app.column_width(32);
  app.footer(
      "Exit status: 0 success (also if a bounded model is full or the reader of the output closes it), 1 failure,\n"
      "2 wrong command line, 130 Ctrl-C, 143 SIGTERM; a second signal ends a command at once.\n"
      "Examples (in examples/models of the repository):\n"
      "  tarn run shakespeare-rfa-gate-int8.tarn -p \"To be, or not\" -n 200\n"
      "  tarn eval shakespeare-abc-mlp-int8.tarn -f README.md --block 256\n"
      "  tarn bench shakespeare-rfa-gate-int8.tarn -d 0,4096 -t 1,2\n"
      "  tarn inspect shakespeare-rfa-gate-int8.tarn");
  Command command;
  AddRun(&app, &command);
  AddClassify(&app, &command);
  AddFill(&app, &command);
  AddEval(&app, &command);
  AddBench(&app, &command);
  AddTokenize(&app, &command);
  AddInspect(&app, &command);
  AddState(&app, &command);
  AddHelp(&app, &command);
  const std::string name = argc > 1 ? argv[1] : "";
  if (argc < 2) throw UsageError("no command, expected " + tarn::tools::Alternatives(app.subcommands()));
  if (name.empty() || name[0] != '-') FindCommand(app, name);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  // As llama-bench has it. The parser knows names of one letter only after one dash.
  for (std::string& argument : arguments) {
    if (name == "bench" && (argument == "-pg" || argument.rfind("-pg=", 0) == 0)) argument.insert(0, "-");
  }
  try {
    if (const std::optional<std::string> text = app.parse(arguments)) {
      WriteStdout(*text);
      return 0;
    }
  } catch (const tarn::tools::ParseError& error) {
    const std::string habit = HabitAnswer(app, {argv + 1, argv + argc});
    throw UsageError(habit.empty() ? error.what() : habit);
  }
  tarn::tools::CatchInterrupts();
  const int status = command();
  return status == 0 && tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : status;
}

int Run(int argc, char** argv) {
  try {
    return ParseAndRun(argc, argv);
  } catch (const UsageError& error) {
    return ComplainOfUsage(error.what());
  }
}

}  // namespace
}  // namespace tarn_cli

int main(int argc, char** argv) { return tarn::tools::RunTool(tarn_cli::Run, argc, argv); }
