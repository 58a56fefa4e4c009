// Defaults that the environment gives.
#ifndef TARN_TOOLS_TARN_ENVIRONMENT_H_
#define TARN_TOOLS_TARN_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace tarn_cli {

// The value of a variable; "" where it is not set.
std::string Environment(const char* name);

// The same as an integer; nothing where it is not set. Throws Failure, which names the variable, where it is none in the range.
std::optional<uint32_t> EnvironmentInteger(const char* name, uint32_t min, uint32_t max);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_ENVIRONMENT_H_
