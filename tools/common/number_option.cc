#include "tools/common/number_option.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"

namespace tarn::tools {
namespace {

std::string RangeText(const NumberRange& range) {
  const double min = range.min, max = range.max;
  char text[80];
  if (std::isinf(range.max)) {
    std::snprintf(text, sizeof(text), "%s %g", range.above ? "above" : "at least", min);
  } else {
    std::snprintf(text, sizeof(text), range.above ? "above %g, at most %g" : "%g to %g", min, max);
  }
  return text;
}

void Parse(const char* text, char** end, float* value) { *value = std::strtof(text, end); }
void Parse(const char* text, char** end, double* value) { *value = std::strtod(text, end); }

// NaN is not inside.
bool Inside(double value, const NumberRange& range) {
  return std::isfinite(value) && (range.above ? value > range.min : value >= range.min) && value <= range.max;
}

template <typename T>
Option* Add(App* app, const std::string& name, const std::string& type_name, T* target, const std::string& description,
            const NumberRange& range) {
  const auto parse = [=](const std::string& text) {
    char* end = nullptr;
    T value = 0;
    Parse(text.c_str(), &end, &value);
    if (text.empty() || *end != '\0' || !Inside(value, range)) {
      throw InvalidValue(name, "is '" + text + "', expected a number: " + RangeText(range));
    }
    *target = value;
  };
  return app->add_option_function(name, parse, WithRange(description, RangeText(range)))->type_name(type_name);
}

}  // namespace

Option* AddNumber(App* app, const std::string& name, const std::string& type_name, float* target, const std::string& description,
                  const NumberRange& range) {
  return Add(app, name, type_name, target, description, range);
}

Option* AddNumber(App* app, const std::string& name, const std::string& type_name, double* target, const std::string& description,
                  const NumberRange& range) {
  return Add(app, name, type_name, target, description, range);
}

}  // namespace tarn::tools
