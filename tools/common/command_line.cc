#include "tools/common/command_line.h"

#include <utility>
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

// What stands before `middle` in `text`, and what stands after it.
std::pair<std::string, std::string> Around(const std::string& text, const std::string& middle) {
  const size_t at = text.find(middle);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + middle.size())};
}

// "FILE": what the option `name` takes.
std::string ValueOf(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option == nullptr ? "a value" : option->get_type_name();
}

std::string MissingText(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return name + " is missing";
  const std::string value = option->get_type_name(), named = option->get_lnames().empty() ? "" : "--" + option->get_lnames()[0];
  if (!option->get_positional()) return named + " is missing, expected " + named + " " + value;
  return "the " + option->get_name(true) + " is missing, expected " + value + (named.empty() ? "" : " or " + named + " " + value);
}

// The parser's errors that are none of `superfluous` arguments, in our words. Those of our own options are in these already.
std::string OptionErrorText(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return MissingText(app, Around(text, " is required").first);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = Around(text, ": ").first;
    if (text.find("received") != std::string::npos) return name + " is there more than once, expected once";
    return name + " has no value, expected " + name + " " + ValueOf(app, name);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const auto [name, other] = Around(text, " requires ");
    const std::string value = ValueOf(app, other);
    return name + " is there without " + other + ", expected " + other + (value.empty() ? "" : " " + value) + " with it";
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [name, other] = Around(text, " excludes ");
    return name + " and " + other + " are both there, expected one of them";
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {  // of a flag: other values are converted by us
    const auto [name, value] = Around(Around(text, "Could not convert: ").second, " = ");
    return name + " is '" + value + "', expected no value";
  }
  return text;
}

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
  if (superfluous.empty()) return command + OptionErrorText(*chosen, error);
  std::string text = command + "unexpected argument" + (superfluous.size() == 1 ? "" : "s");
  for (const std::string& argument : superfluous) text += " '" + argument + "'";
  return text + " (a text with spaces needs quotes)";
}

}  // namespace tarn::tools
