#include "tools/tarn/number_option.h"

#include <cmath>
#include <cstdlib>

#include "tools/common/command_line.h"
#include "tools/common/integer_option.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

std::string RangeText(const NumberRange& range) {
  const double min = range.min, max = range.max;
  if (std::isinf(range.max)) return Format("%s %g", range.above ? "above" : "at least", min);
  return range.above ? Format("above %g, at most %g", min, max) : Format("%g to %g", min, max);
}

// NaN is not inside.
bool Inside(float value, const NumberRange& range) {
  return std::isfinite(value) && (range.above ? value > range.min : value >= range.min) && value <= range.max;
}

}  // namespace

Option* AddNumber(App* app, const std::string& name, const std::string& type_name, float* target, const std::string& description,
                  const NumberRange& range) {
  const auto parse = [=](const std::string& text) {
    char* end = nullptr;
    const float value = std::strtof(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !Inside(value, range)) {
      throw tarn::tools::InvalidValue(name, "is '" + text + "', expected a number: " + RangeText(range));
    }
    *target = value;
  };
  return app->add_option_function(name, parse, tarn::tools::WithRange(description, RangeText(range)))->type_name(type_name);
}

}  // namespace tarn_cli
