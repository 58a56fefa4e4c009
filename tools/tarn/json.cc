#include "tools/tarn/json.h"

#include <cmath>
#include <cstdio>
#include <string_view>

#include "tools/common/printable.h"

namespace tarn_cli {

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
  if (kind_ == Kind::kString) {
    *out += tarn::tools::JsonString(text_);
    return;
  }
  const auto new_line = [&](int levels) {
    if (indent) out->append("\n").append(static_cast<size_t>(*indent * levels), ' ');
  };
  *out += kind_ == Kind::kObject ? '{' : '[';
  for (const Field& item : items_) {
    if (&item != &items_.front()) *out += ',';
    new_line(depth + 1);
    if (kind_ == Kind::kObject) {
      *out += tarn::tools::JsonString(item.key);
      *out += indent ? ": " : ":";
    }
    item.value.AppendTo(out, indent, depth + 1);
  }
  if (!items_.empty()) new_line(depth);
  *out += kind_ == Kind::kObject ? '}' : ']';
}

}  // namespace tarn_cli
