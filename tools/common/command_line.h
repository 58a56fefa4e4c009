// What both tools add to the parser: errors in our words.
#ifndef TARN_TOOLS_COMMON_COMMAND_LINE_H_
#define TARN_TOOLS_COMMON_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>

namespace tarn::tools {

// One line for an error of `app.parse()`: the first unknown option with the known one that is near, else the arguments that nobody
// takes, in their order, else what the parser says.
std::string ParseErrorText(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_COMMAND_LINE_H_
