#include "tools/common/command_line.h"

#include <vector>

#include "tools/common/suggestion.h"

namespace tarn::tools {
namespace {

// The subcommand that was chosen, or the program itself.
const CLI::App* Chosen(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? &app : parsed.front();
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool IsOption(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

}  // namespace

std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error) {
  // The parser tells what is missing before what is superfluous, although a slip in a name is the reason of both.
  const std::vector<std::string> superfluous = app.remaining(true);
  const CLI::App* chosen = Chosen(app);
  const std::string command = chosen == &app ? "" : chosen->get_name() + ": ";
  for (const std::string& argument : superfluous) {
    if (!IsOption(argument)) continue;
    const std::string name = argument.substr(0, argument.find('='));
    return command + "unknown option '" + name + "'" + DidYouMean(name, OptionNames(*chosen));
  }
  if (superfluous.empty()) return error.what();
  std::string text = command + "unexpected argument" + (superfluous.size() == 1 ? "" : "s");
  for (const std::string& argument : superfluous) text += " '" + argument + "'";
  return text + " (a text with spaces needs quotes)";
}

}  // namespace tarn::tools
