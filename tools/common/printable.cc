#include "tools/common/printable.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "core/visible.h"

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

void AppendUnit(uint32_t unit, std::string* out) {
  char escaped[8];
  std::snprintf(escaped, sizeof(escaped), "\\u%04x", unit);
  *out += escaped;
}

}  // namespace

size_t VisibleCharacter(std::string_view text) { return VisibleBytes(text.data(), text.size()); }

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

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

void AppendJsonCharacters(std::string_view text, std::string* out) {
  while (!text.empty()) {
    uint32_t code_point = 0xFFFD;
    const size_t length = tarn::DecodeUtf8(text.data(), text.size(), &code_point);
    if (code_point == '"' || code_point == '\\') {
      *out += '\\';
      *out += static_cast<char>(code_point);
    } else if (code_point == '\n') {
      *out += "\\n";
    } else if (code_point == '\t') {
      *out += "\\t";
    } else if (code_point >= 0x20 && code_point < 0x7F) {
      *out += static_cast<char>(code_point);
    } else if (code_point < 0x10000) {
      AppendUnit(code_point, out);
    } else {
      AppendUnit(0xD800 + ((code_point - 0x10000) >> 10), out);
      AppendUnit(0xDC00 + (code_point & 0x3FF), out);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void AppendJsonString(std::string_view text, std::string* out) {
  *out += '"';
  AppendJsonCharacters(text, out);
  *out += '"';
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
