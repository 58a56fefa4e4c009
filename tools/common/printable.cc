#include "tools/common/printable.h"

#include <cstddef>

#include "runtime/core/visible.h"

namespace tarn::tools {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

void AppendEscaped(unsigned char byte, std::string* out) {
  *out += "\\x";
  *out += kDigits[byte >> 4];
  *out += kDigits[byte & 15];
}

// The last place at or before `at` where no character goes on.
size_t CharacterBegin(std::string_view text, size_t at) {
  size_t begin = at;
  for (int i = 0; i < 3 && begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80; ++i) --begin;
  return begin;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t visible = VisibleBytes(text.data(), text.size());
    if (visible == 0) {
      AppendEscaped(static_cast<unsigned char>(text[0]), &out);
    } else {
      out += text.substr(0, visible);
    }
    text.remove_prefix(visible == 0 ? 1 : visible);
  }
  return out;
}

std::string ErrorLine(std::string_view text) {
  // The front names the thing, the end what was expected.
  constexpr size_t kFront = 600, kEnd = 400;
  if (text.size() <= kFront + kEnd) return Printable(text);
  const size_t front = CharacterBegin(text, kFront);
  const size_t end = CharacterBegin(text, text.size() - kEnd);
  return Printable(text.substr(0, front)) + " [" + std::to_string(end - front) + " bytes left out] " + Printable(text.substr(end));
}

}  // namespace tarn::tools
