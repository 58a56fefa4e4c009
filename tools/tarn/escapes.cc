#include "tools/tarn/escapes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "tools/tarn/error.h"

namespace tarn_cli {
namespace {

constexpr char kPlain[] = "nrt\\'\"", kMeaning[] = "\n\r\t\\'\"";

// The number that `digits` hexadecimal digits from `at` on make.
std::optional<uint32_t> Hexadecimal(const std::string& text, size_t at, size_t digits) {
  const std::string number = text.substr(std::min(at, text.size()), digits);
  if (number.size() < digits || number.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return std::nullopt;
  return static_cast<uint32_t>(std::strtoul(number.c_str(), nullptr, 16));
}

// Of the basic plane, no surrogate.
void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto add = [=](uint32_t byte) { *out += static_cast<char>(byte); };
  if (code_point < 0x80) return add(code_point);
  if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
  } else {
    add(0xE0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3F));
  }
  add(0x80 | (code_point & 0x3F));
}

// Appends what the sequence after the backslash at `at` stands for, and returns how many bytes it has; 0: it is none.
size_t AppendSequence(const std::string& text, size_t at, std::string* out) {
  if (at + 1 >= text.size()) return 0;
  const char letter = text[at + 1];
  const std::string plain = kPlain;
  if (const size_t found = plain.find(letter); found != std::string::npos) {
    *out += kMeaning[found];
    return 2;
  }
  const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 0;
  const std::optional<uint32_t> value = Hexadecimal(text, at + 2, digits);
  if (digits == 0 || !value || (*value >= 0xD800 && *value <= 0xDFFF)) return 0;
  if (letter == 'x') {
    *out += static_cast<char>(*value);
  } else {
    AppendUtf8(*value, out);
  }
  return 2 + digits;
}

}  // namespace

std::string Unescape(const std::string& text, const std::string& option) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      out += text[i++];
      continue;
    }
    const size_t size = AppendSequence(text, i, &out);
    if (size == 0) {
      throw UsageError("run: " + option + ": '" + text.substr(i, 6) +
                       "' is no escape sequence, expected \\n, \\r, \\t, \\\\, \\', \\\", \\xHH or \\uHHHH");
    }
    i += size;
  }
  return out;
}

}  // namespace tarn_cli
