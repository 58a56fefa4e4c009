// tarn: the command line. Parses, runs one subcommand, and turns every failure into one line and an exit status:
// 0 done, 1 failed, 2 wrong command line, 128 + signal: interrupted.
#include <tarn/tarn.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>
#include <string>

#include "tools/common/printable.h"
#include "tools/common/signals.h"
#include "tools/tarn/commands.h"
#include "tools/tarn/error.h"
#include "tools/tarn/files.h"

namespace tarn_cli {
namespace {

constexpr int kFailedExit = 1;
constexpr int kUsageExit = 2;

int Complain(const std::string& message, int exit_status) {
  std::fprintf(stderr, "tarn: error: %s\n", tarn::tools::ErrorLine(message).c_str());
  if (exit_status == kUsageExit) std::fprintf(stderr, "`tarn --help` and `tarn COMMAND --help` say more\n");
  return exit_status;
}

int Main(int argc, char** argv) {
  CLI::App app("Sequence models whose memory does not grow.", "tarn");
  app.set_version_flag("--version", std::string("tarn ") + tarn_version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(32);
  app.footer(
      "Examples:\n"
      "  tarn run -m model.tarn -p \"To be, or not\" -n 200\n"
      "  tarn eval -m model.tarn -f text.txt --block 256\n"
      "  tarn bench -m model.tarn -d 0,4096 -t 1,2\n"
      "  tarn inspect model.tarn");
  Command command;
  AddRun(&app, &command);
  AddClassify(&app, &command);
  AddFill(&app, &command);
  AddEval(&app, &command);
  AddBench(&app, &command);
  AddInspect(&app, &command);
  const std::string name = argc > 1 ? argv[1] : "-";
  if (name.empty() || (name[0] != '-' && app.get_subcommands([&](CLI::App* known) { return known->check_name(name); }).empty())) {
    return Complain("unknown subcommand '" + name + "', wanted run, classify, fill, eval, bench or inspect", kUsageExit);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    app.exit(request, text, text);
    WriteStdout(text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    return Complain(error.what(), kUsageExit);
  }
  return command();
}

}  // namespace
}  // namespace tarn_cli

int main(int argc, char** argv) {
  using namespace tarn_cli;
  tarn::tools::IgnoreWriteSignals();
  // A buffer of our own: the C library would allocate one at the first write.
  static char stdout_buffer[1 << 16];
  std::setvbuf(stdout, stdout_buffer, _IOFBF, sizeof(stdout_buffer));
  try {
    return Main(argc, argv);
  } catch (const UsageError& error) {
    return Complain(error.what(), kUsageExit);
  } catch (const std::exception& error) {
    return Complain(error.what(), tarn::tools::Interrupted() ? tarn::tools::InterruptedExit() : kFailedExit);
  }
}
