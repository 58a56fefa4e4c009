#include "core/format.h"

namespace tarn {

size_t Format(char* text, size_t text_bytes, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t used = FormatV(text, text_bytes, format, arguments);
  va_end(arguments);
  return used;
}

}  // namespace tarn
