#include "tools/convert/json/python_json.h"

namespace tarn::convert {

std::string WithQuotedInfinities(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    size_t word = 0;
    for (const std::string_view name : {"NaN", "Infinity", "-Infinity"}) {
      if (!in_string && text.substr(i, name.size()) == name) word = name.size();
    }
    if (word != 0) {
      quoted += '"' + std::string(text.substr(i, word)) + '"';
      i += word - 1;
      continue;
    }
    quoted += c;
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\' && i + 1 < text.size()) quoted += text[++i];
  }
  return quoted;
}

}  // namespace tarn::convert
