// Status: a code and one line of words, by value. Errors are made where the numbers are known and carried up unchanged.
//
// The message lives inside the object: an error costs no allocation, so that the paths that run after a session is created can
// fail as well as any other.
#ifndef TARN_CORE_STATUS_H_
#define TARN_CORE_STATUS_H_

#include <cstddef>
#include <cstring>

#include "tarn/status.h"

namespace tarn {

class [[nodiscard]] Status {
 public:
  static constexpr size_t kMessageBytes = 252;

  Status() : code_(TARN_OK) { message_[0] = '\0'; }
  Status(const Status& other) { *this = other; }
  Status& operator=(const Status& other) {
    code_ = other.code_;
    std::strcpy(message_, other.message_);  // message_ is always terminated
    return *this;
  }

  bool ok() const { return code_ == TARN_OK; }
  tarn_status code() const { return code_; }
  const char* message() const { return message_; }

  // `*this` with "context: " before its message; an ok status stays as it is.
  Status In(const char* format, ...) const __attribute__((format(printf, 2, 3)));

 private:
  friend Status Error(tarn_status, const char*, ...);
  tarn_status code_;
  char message_[kMessageBytes];
};

inline Status Ok() { return Status(); }

// A failure, printf-style. Longer messages are cut.
Status Error(tarn_status code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// "ok", "invalid argument", ...; "unknown status" for a number that the table does not have.
const char* StatusString(tarn_status code);

}  // namespace tarn

#define TARN_RETURN_IF_ERROR(expression)                     \
  do {                                                       \
    ::tarn::Status tarn_status_value_ = (expression);        \
    if (!tarn_status_value_.ok()) return tarn_status_value_; \
  } while (false)

#endif  // TARN_CORE_STATUS_H_
