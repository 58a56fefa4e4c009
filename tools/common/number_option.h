// Numbers that need not be integers, as options of a command line.
#ifndef TARN_TOOLS_COMMON_NUMBER_OPTION_H_
#define TARN_TOOLS_COMMON_NUMBER_OPTION_H_

#include <limits>
#include <string>

#include "tools/common/command_line.h"

namespace tarn::tools {

struct NumberRange {
  float min;
  bool above = false;  // min itself is outside
  float max = std::numeric_limits<float>::infinity();
};

// The help shows the range after the default; another value is an error that names it. Infinity and NaN are outside of every range.
Option* AddNumber(App* app, const std::string& name, const std::string& type_name, float* target, const std::string& description,
                  const NumberRange& range);
Option* AddNumber(App* app, const std::string& name, const std::string& type_name, double* target, const std::string& description,
                  const NumberRange& range);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_NUMBER_OPTION_H_
