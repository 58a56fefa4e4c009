#include "tools/tarn/json.h"

#include <cmath>
#include <cstdio>
#include <string_view>

#include "runtime/core/visible.h"

namespace tarn_cli {
namespace {

void AppendUnit(uint32_t unit, std::string* out) {
  char escaped[8];
  std::snprintf(escaped, sizeof(escaped), "\\u%04x", unit);
  *out += escaped;
}

void AppendString(std::string_view text, std::string* out) {
  *out += '"';
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
  *out += '"';
}

}  // namespace

// 12 significant digits are more than anything that is measured has, and fewer than what rounding leaves behind
// (1.4667599999999999).
std::string Json::NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof(text), "%.12g", value);
  const bool integer = std::string_view(text).find_first_of(".e") == std::string_view::npos;
  return integer ? std::string(text) + ".0" : text;
}

std::string Json::Dump(std::optional<int> indent) const {
  std::string out;
  AppendTo(&out, indent, 0);
  return out;
}

void Json::AppendTo(std::string* out, std::optional<int> indent, int depth) const {
  if (kind_ == Kind::kScalar) {
    *out += text_;
    return;
  }
  if (kind_ == Kind::kString) return AppendString(text_, out);
  const auto new_line = [&](int levels) {
    if (indent) out->append("\n").append(static_cast<size_t>(*indent * levels), ' ');
  };
  *out += kind_ == Kind::kObject ? '{' : '[';
  for (const Field& item : items_) {
    if (&item != &items_.front()) *out += ',';
    new_line(depth + 1);
    if (kind_ == Kind::kObject) {
      AppendString(item.key, out);
      *out += indent ? ": " : ":";
    }
    item.value.AppendTo(out, indent, depth + 1);
  }
  if (!items_.empty()) new_line(depth);
  *out += kind_ == Kind::kObject ? '}' : ']';
}

}  // namespace tarn_cli
