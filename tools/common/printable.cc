#include "tools/common/printable.h"

#include <cstddef>

namespace tarn::tools {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// The first byte of U+0080 .. U+009F in UTF-8, which are control characters too.
constexpr unsigned char kSecondHalf = 0xC2;

bool IsControl(unsigned char byte, unsigned char next) {
  return byte < 0x20 || byte == 0x7F || (byte == kSecondHalf && next >= 0x80 && next < 0xA0);
}

void AppendEscaped(unsigned char byte, std::string* out) {
  *out += "\\x";
  *out += kDigits[byte >> 4];
  *out += kDigits[byte & 15];
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (!IsControl(byte, next)) {
      out += text[i];
      continue;
    }
    AppendEscaped(byte, &out);
    if (byte == kSecondHalf) {
      AppendEscaped(next, &out);
      ++i;
    }
  }
  return out;
}

}  // namespace tarn::tools
