#include "tools/tarn/environment.h"

#include <cstdlib>

#include "tools/common/integer.h"
#include "tools/tarn/error.h"

namespace tarn_cli {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<uint32_t> EnvironmentInteger(const char* name, uint32_t min, uint32_t max) {
  const std::string text = Environment(name);
  if (text.empty()) return std::nullopt;
  const std::optional<uint32_t> value = tarn::tools::ParseInteger<uint32_t>(text, min, max);
  if (!value) throw Failure(std::string(name) + " of the environment " + tarn::tools::NotInteger<uint32_t>(text, min, max));
  return value;
}

}  // namespace tarn_cli
