#include "runtime/core/status.h"

#include <cstdarg>

#include "runtime/core/format.h"

namespace tarn {
namespace {

// Names come from files and paths: a message stays one line and cannot steer a terminal.
void ReplaceControlBytes(char* text) {
  for (; *text != '\0'; ++text) {
    const unsigned char byte = static_cast<unsigned char>(*text);
    if (byte < 0x20 || byte == 0x7f) *text = '?';
  }
}

}  // namespace

Status Error(tarn_status code, const char* format, ...) {
  Status status;
  status.code_ = code;
  va_list arguments;
  va_start(arguments, format);
  FormatV(status.message_, sizeof(status.message_), format, arguments);
  va_end(arguments);
  ReplaceControlBytes(status.message_);
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
