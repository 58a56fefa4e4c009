// Commands and their options, and errors of a command line in our words. What is behind it, CLI11, takes seconds to compile
// wherever it is included: command_line.cc alone does. Methods have the names that they have there.
#ifndef TARN_TOOLS_COMMON_COMMAND_LINE_H_
#define TARN_TOOLS_COMMON_COMMAND_LINE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tarn::tools {

// A value that an option does not take, thrown by the function of that option: "--mirostat: is '1', expected 0 or 2".
class InvalidValue : public std::runtime_error {
 public:
  InvalidValue(const std::string& option, const std::string& what) : std::runtime_error(option + ": " + what) {}
};

// A wrong command line, in one line.
class ParseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An option or a positional argument of an App, which owns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;

  // Return this.
  Option* type_name(const std::string& name);    // of its values, in the help
  Option* input_file();                          // type FILE, not ""
  Option* output_file();                         // the same, and not "-"
  Option* directory();                           // type DIR, not ""
  Option* group(const std::string& name);        // its heading in the help; "": hidden
  Option* default_str(const std::string& text);  // what it has where it is given without a value
  Option* required();
  Option* needs(const Option* other);
  Option* needs(const std::string& other);
  Option* excludes(const Option* other);
  Option* excludes(const std::string& other);
  Option* expected(int fewest, int most);  // values
  Option* allow_extra_args(bool allowed);  // false: of a list, one value each time that the option is given
  Option* check(const std::function<std::string(const std::string&)>& check);  // of a value: what is wrong with it, or ""

  // Once the command line was read.
  size_t count() const;
  bool empty() const { return count() == 0; }
  std::string get_name() const;

 private:
  CLI::Option* const option_;
};

// A program, or one of its subcommands. What options write to outlives it.
class App {
 public:
  App(const std::string& description, const std::string& name);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  App* add_subcommand(const std::string& name, const std::string& description);
  void require_subcommand();  // exactly one
  void set_version_flag(const std::string& name, const std::string& version);
  void footer(const std::string& text);              // of the help
  void column_width(size_t width);                   // of names in the help
  std::string set_group(const std::string& name);    // heading of the options that are added from now on; returns the one before
  void callback(const std::function<void()>& done);  // called when the command line was read

  // `names`: "-f,--file", "file" of a positional argument, or both.
  Option* add_option(const std::string& names, std::string& target, const std::string& description);
  Option* add_option(const std::string& names, std::optional<std::string>& target, const std::string& description);
  Option* add_option(const std::string& names, std::vector<std::string>& target, const std::string& description);
  Option* add_option(const std::string& names, double& target, const std::string& description);
  Option* add_flag(const std::string& names, bool& target, const std::string& description = "");
  Option* add_flag_callback(const std::string& names, const std::function<void()>& take, const std::string& description);
  // `take` may throw InvalidValue; a list has all values of the command line.
  Option* add_option_function(const std::string& names, const std::function<void(const std::string&)>& take,
                              const std::string& description);
  Option* add_option_function(const std::string& names, const std::function<void(const std::vector<std::string>&)>& take,
                              const std::string& description);

  // Reads a command line without the program's name. The text to print, of --help or --version, if that is all there is to do.
  // Throws ParseError, and what a callback throws: the first unknown option with the known one that is near, else the arguments
  // that nobody takes, in their order, else what is wrong with an option.
  std::optional<std::string> parse(std::vector<std::string> arguments);
  size_t count(const std::string& option) const;  // once the command line was read

  std::string help() const;
  std::vector<std::string> subcommands() const;
  const App* find_subcommand(const std::string& name) const;  // nullptr: there is none
  // Whether the argument after `argument` is its value, in the subcommand that was chosen.
  bool takes_next(const std::string& argument) const;

  // What parse() says, for programs that find it out themselves.
  std::string MissingText(const std::string& option) const;
  std::string WithoutText(const std::string& option, const std::string& other) const;  // that it needs
  static std::string BothText(const std::string& option, const std::string& other);    // of which one excludes the other

 private:
  explicit App(CLI::App* app);
  Option* Own(CLI::Option* option);

  std::unique_ptr<CLI::App> program_;  // nullptr: of a subcommand
  CLI::App* const app_;
  std::vector<std::unique_ptr<App>> subcommands_;
  std::vector<std::unique_ptr<Option>> options_;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_COMMAND_LINE_H_
