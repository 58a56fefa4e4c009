// Integers as people write them.
#ifndef TARN_TOOLS_COMMON_INTEGER_H_
#define TARN_TOOLS_COMMON_INTEGER_H_

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tarn::tools {

// The decimal integer that is all of `text`: no space, no other base, '-' where T is signed only. Nothing if it is none, or outside
// [min, max].
template <typename T>
std::optional<T> ParseInteger(std::string_view text, T min, T max) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < min || value > max) return std::nullopt;
  return value;
}

// What to say if it is none: "is '-1', expected an integer from 0 to 9".
template <typename T>
std::string NotInteger(std::string_view text, T min, T max) {
  return "is '" + std::string(text) + "', expected an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_INTEGER_H_
