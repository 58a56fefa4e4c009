// Integers as options of a command line.
#ifndef TARN_TOOLS_COMMON_INTEGER_OPTION_H_
#define TARN_TOOLS_COMMON_INTEGER_OPTION_H_

#include <limits>
#include <string>

#include "tools/common/command_line.h"
#include "tools/common/integer.h"

namespace tarn::tools {

// "Threads (default: 1)" with its range: "Threads (default: 1; 1 to 256)".
inline std::string WithRange(std::string description, const std::string& range) {
  if (range.empty()) return description;
  const bool has_default = description.find("(default: ") != std::string::npos && description.back() == ')';
  return has_default ? description.insert(description.size() - 1, "; " + range) : description + " (" + range + ")";
}

// Empty where T alone is the limit.
template <typename T>
std::string IntegerRange(T min, T max) {
  if (max != std::numeric_limits<T>::max()) return std::to_string(min) + " to " + std::to_string(max);
  return min == std::numeric_limits<T>::min() ? "" : "at least " + std::to_string(min);
}

// The parser's own conversion wraps -1 around and reads 010 as 8. `Target` is T, or what takes one (an optional).
template <typename T, typename Target>
Option* AddInteger(App* app, const std::string& names, Target* target, const std::string& description,
                   T min = std::numeric_limits<T>::min(), T max = std::numeric_limits<T>::max()) {
  const std::string name = names.substr(names.rfind(',') + 1);  // all of it where there is one
  const auto parse = [=](const std::string& text) {
    const std::optional<T> value = ParseInteger<T>(text, min, max);
    if (!value) throw InvalidValue(name, NotInteger(text, min, max));
    *target = *value;
  };
  return app->add_option_function(names, parse, WithRange(description, IntegerRange(min, max)))->type_name("N");
}

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_INTEGER_OPTION_H_
