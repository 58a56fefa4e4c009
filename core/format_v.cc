#include <cstdio>

#include "core/format.h"

namespace tarn {

size_t FormatV(char* text, size_t text_bytes, const char* format, va_list arguments) {
  const int wanted = std::vsnprintf(text, text_bytes, format, arguments);
  if (wanted < 0) {
    text[0] = '\0';
    return 0;
  }
  return static_cast<size_t>(wanted) < text_bytes ? static_cast<size_t>(wanted) : text_bytes - 1;
}

}  // namespace tarn
