// Numbers that need not be integers, as options of a command line.
#ifndef TARN_TOOLS_TARN_NUMBER_OPTION_H_
#define TARN_TOOLS_TARN_NUMBER_OPTION_H_

#include <limits>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tarn_cli {

struct NumberRange {
  float min;
  bool above = false;  // min itself is outside
  float max = std::numeric_limits<float>::infinity();
};

// The help shows the range after the default; another value is an error that names it. Infinity and NaN are outside of every range.
CLI::Option* AddNumber(CLI::App* app, const std::string& name, const std::string& type_name, float* target,
                       const std::string& description, const NumberRange& range);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_NUMBER_OPTION_H_
