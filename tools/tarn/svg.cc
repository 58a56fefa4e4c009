#include "tools/tarn/svg.h"

#include <cstdint>

#include "tools/common/printable.h"
#include "tools/tarn/report.h"

namespace tarn_cli {
namespace {

// Bytes of the UTF-8 character that begins at `at` and may stand in XML; 0: there is none. Names come from files.
size_t CharacterBytes(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const size_t count = byte(0) < 0x80 ? 1 : byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : byte(0) < 0xF5 ? 4 : 0;
  uint32_t code = count < 2 ? byte(0) : byte(0) & (0x7Fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0x20, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < kLeast[count] || surrogate || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF ? 0 : count;
}

}  // namespace

std::string SvgEscape(const std::string& name) {
  const std::string text = tarn::tools::Printable(name);
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text, at);
    if (bytes != 1) {
      escaped += bytes == 0 ? "\xEF\xBF\xBD" : text.substr(at, bytes);  // U+FFFD
      at += bytes == 0 ? 1 : bytes;
      continue;
    }
    const char c = text[at++];
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string SvgHead(double width, double height) {
  return Format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n", width,
                height, width, height);
}

std::string SvgText(double x, double y, const char* anchor, const std::string& text, const char* style) {
  return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y, anchor, style,
                SvgEscape(text).c_str());
}

std::string SvgLine(double x1, double y1, double x2, double y2, const char* style) {
  return Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, style);
}

}  // namespace tarn_cli
