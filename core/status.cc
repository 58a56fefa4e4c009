#include "core/status.h"

#include <cstdarg>

#include "core/format.h"
#include "core/visible.h"

namespace tarn {
namespace {

// Names come from files and paths: a message stays one line of UTF-8 that cannot steer a terminal. A hidden character becomes as
// many '?' as it has bytes.
void ReplaceHidden(char* text, size_t text_bytes) {
  for (size_t i = 0; i < text_bytes;) {
    const size_t visible = VisibleBytes(text + i, text_bytes - i);
    if (visible == 0) text[i] = '?';
    i += visible == 0 ? 1 : visible;
  }
}

}  // namespace

Status Error(tarn_status code, const char* format, ...) {
  Status status;
  status.code_ = code;
  va_list arguments;
  va_start(arguments, format);
  const size_t bytes = FormatV(status.message_, sizeof(status.message_), format, arguments);
  va_end(arguments);
  ReplaceHidden(status.message_, bytes);
  return status;
}

Status Status::In(const char* format, ...) const {
  if (ok()) return *this;
  char context[kMessageBytes];
  va_list arguments;
  va_start(arguments, format);
  FormatV(context, sizeof(context), format, arguments);
  va_end(arguments);
  return Error(code_, "%s: %s", context, message_);
}

const char* StatusString(tarn_status code) {
  switch (code) {
#define TARN_STATUS_CASE(name, number, text) \
  case TARN_##name:                          \
    return text;
    TARN_STATUS_TABLE(TARN_STATUS_CASE)
#undef TARN_STATUS_CASE
  }
  return "unknown status";
}

}  // namespace tarn
