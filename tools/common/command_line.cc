#include "tools/common/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

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

std::string Missing(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return name + " is missing";
  const std::string value = option->get_type_name(), named = option->get_lnames().empty() ? "" : "--" + option->get_lnames()[0];
  if (!option->get_positional()) return named + " is missing, expected " + named + " " + value;
  return "the " + option->get_name(true) + " is missing, expected " + value + (named.empty() ? "" : " or " + named + " " + value);
}

std::string WithoutOther(const CLI::App& app, const std::string& name, const std::string& other) {
  const std::string value =
      other.find(' ') == std::string::npos ? ValueOf(app, other) : "";  // several options, or one with a value
  return name + " is there without " + other + ", expected " + other + (value.empty() ? "" : " " + value) + " with it";
}

// The parser's errors that are none of `superfluous` arguments, in our words. Those of our own options are in these already.
std::string OptionErrorText(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return Missing(app, Around(text, " is required").first);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = Around(text, ": ").first;
    if (text.find("received") != std::string::npos) return name + " is there more than once, expected once";
    return name + " has no value, expected " + name + " " + ValueOf(app, name);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const auto [name, other] = Around(text, " requires ");
    return WithoutOther(app, name, other);
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [name, other] = Around(text, " excludes ");
    return App::BothText(name, other);
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {  // of a flag: other values are converted by us
    const auto [name, value] = Around(Around(text, "Could not convert: ").second, " = ");
    return name + " is '" + value + "', expected no value";
  }
  return text;
}

// One line for an error of `app.parse()`.
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
  bool is_text = false;
  for (const std::string& argument : superfluous) {
    text += " '" + argument + "'";
    is_text = is_text || argument.find(' ') != std::string::npos;
  }
  if (is_text) return text + (chosen->get_option_no_throw("--prompt") == nullptr ? "" : " (a prompt needs -p)");
  return text + " (a text with spaces needs quotes)";
}

// A function of ours as the parser calls it.
template <typename Value>
std::function<void(const Value&)> Guarded(const std::function<void(const Value&)>& take) {
  return [take](const Value& value) {
    try {
      take(value);
    } catch (const InvalidValue& error) {
      throw CLI::ValidationError(error.what());
    }
  };
}

}  // namespace

// ---- Option ----

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

Option* Option::input_file() {
  return type_name("FILE")->check([](const std::string& path) { return path.empty() ? "is '', expected a file" : ""; });
}

Option* Option::output_file() {
  return input_file()->check(
      [](const std::string& path) { return path == "-" ? "is '-', expected a file (./- is a file of that name)" : ""; });
}

Option* Option::directory() {
  return type_name("DIR")->check([](const std::string& path) { return path.empty() ? "is '', expected a directory" : ""; });
}

Option* Option::group(const std::string& name) {
  option_->group(name);
  return this;
}

Option* Option::default_str(const std::string& text) {
  option_->default_str(text);
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::needs(const Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::needs(const std::string& other) {
  option_->needs(other);
  return this;
}

Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::excludes(const std::string& other) {
  option_->excludes(other);
  return this;
}

Option* Option::expected(int fewest, int most) {
  option_->expected(fewest, most);
  return this;
}

Option* Option::allow_extra_args(bool allowed) {
  option_->allow_extra_args(allowed);
  return this;
}

Option* Option::check(const std::function<std::string(const std::string&)>& check) {
  option_->check(CLI::Validator(check, ""));
  return this;
}

size_t Option::count() const { return option_->count(); }

std::string Option::get_name() const { return option_->get_name(); }

// ---- App ----

App::App(const std::string& description, const std::string& name)
    : program_(std::make_unique<CLI::App>(description, name)), app_(program_.get()) {}

App::App(CLI::App* app) : app_(app) {}

App::~App() = default;

Option* App::Own(CLI::Option* option) {
  options_.push_back(std::make_unique<Option>(option));
  return options_.back().get();
}

App* App::add_subcommand(const std::string& name, const std::string& description) {
  subcommands_.emplace_back(new App(app_->add_subcommand(name, description)));
  return subcommands_.back().get();
}

void App::require_subcommand() { app_->require_subcommand(1); }

void App::set_version_flag(const std::string& name, const std::string& version) { app_->set_version_flag(name, version); }

void App::footer(const std::string& text) { app_->footer(text); }

void App::column_width(size_t width) { app_->get_formatter()->column_width(width); }

std::string App::set_group(const std::string& name) {
  const std::string before = app_->option_defaults()->get_group();
  app_->option_defaults()->group(name);
  return before;
}

void App::callback(const std::function<void()>& done) { app_->callback(done); }

Option* App::add_option(const std::string& names, std::string& target, const std::string& description) {
  return Own(app_->add_option(names, target, description));
}

Option* App::add_option(const std::string& names, std::optional<std::string>& target, const std::string& description) {
  return Own(app_->add_option(names, target, description));
}

Option* App::add_option(const std::string& names, std::vector<std::string>& target, const std::string& description) {
  return Own(app_->add_option(names, target, description));
}

Option* App::add_option(const std::string& names, double& target, const std::string& description) {
  return Own(app_->add_option(names, target, description));
}

Option* App::add_flag(const std::string& names, bool& target, const std::string& description) {
  return Own(app_->add_flag(names, target, description));
}

Option* App::add_flag_callback(const std::string& names, const std::function<void()>& take, const std::string& description) {
  return Own(app_->add_flag_callback(names, take, description));
}

Option* App::add_option_function(const std::string& names, const std::function<void(const std::string&)>& take,
                                 const std::string& description) {
  return Own(app_->add_option_function<std::string>(names, Guarded(take), description));
}

Option* App::add_option_function(const std::string& names, const std::function<void(const std::vector<std::string>&)>& take,
                                 const std::string& description) {
  return Own(app_->add_option_function<std::vector<std::string>>(names, Guarded(take), description));
}

std::optional<std::string> App::parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as the parser wants them
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    app_->exit(request, text, text);
    return text.str();
  } catch (const CLI::ParseError& error) {
    throw ParseError(ParseErrorText(*app_, error));
  }
  return std::nullopt;
}

size_t App::count(const std::string& option) const { return app_->count(option); }

std::string App::help() const {
  // The parser's help() is that of the subcommand which was chosen.
  const CLI::App* parent = app_->get_parent();
  const std::string name = (parent == nullptr ? "" : parent->get_name() + " ") + app_->get_name();
  return app_->get_formatter()->make_help(app_, name, CLI::AppFormatMode::Normal);
}

std::vector<std::string> App::subcommands() const {
  std::vector<std::string> names;
  for (const auto& command : subcommands_) names.push_back(command->app_->get_name());
  return names;
}

const App* App::find_subcommand(const std::string& name) const {
  for (const auto& command : subcommands_) {
    if (command->app_->check_name(name)) return command.get();
  }
  return nullptr;
}

bool App::takes_next(const std::string& argument) const {
  const CLI::App* chosen = Chosen(*app_);
  const CLI::Option* option = chosen == app_ ? nullptr : chosen->get_option_no_throw(argument);
  return option != nullptr && !option->get_positional() && option->get_items_expected_min() > 0;
}

std::string App::MissingText(const std::string& option) const { return Missing(*app_, option); }

std::string App::WithoutText(const std::string& option, const std::string& other) const {
  return WithoutOther(*app_, option, other);
}

std::string App::BothText(const std::string& option, const std::string& other) {
  return option + " and " + other + " are both there, expected one of them";
}

}  // namespace tarn::tools
