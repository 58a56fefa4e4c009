// Colours of a terminal; no other file gets any.
#ifndef TARN_TOOLS_TARN_COLOR_H_
#define TARN_TOOLS_TARN_COLOR_H_

#include <cstdio>
#include <string>

namespace tarn_cli {

inline const std::string kPromptColor = "\033[36m";    // cyan
inline const std::string kQuestionColor = "\033[32m";  // green
inline const std::string kNoColor = "\033[0m";

// `file` is a terminal that knows colours, and NO_COLOR of the environment is empty or not set (https://no-color.org).
bool UseColor(std::FILE* file);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_COLOR_H_
