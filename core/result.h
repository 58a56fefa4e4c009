// Result<T>: a value, or the Status that says why there is none.
#ifndef TARN_CORE_RESULT_H_
#define TARN_CORE_RESULT_H_

#include <utility>

#include "core/status.h"

namespace tarn {

// T is default-constructible and movable (a pointer, a count, a small struct).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Status status) : status_(status) {}     // NOLINT: implicit by design; must not be ok

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return value_; }
  const T& value() const { return value_; }

 private:
  Status status_;
  T value_{};
};

}  // namespace tarn

#define TARN_CONCAT_INNER_(a, b) a##b
#define TARN_CONCAT_(a, b) TARN_CONCAT_INNER_(a, b)
// TARN_ASSIGN_OR_RETURN(auto x, F()): x = F()'s value, or return its status.
#define TARN_ASSIGN_OR_RETURN(lhs, expression) TARN_ASSIGN_OR_RETURN_(TARN_CONCAT_(tarn_result_, __LINE__), lhs, expression)
#define TARN_ASSIGN_OR_RETURN_(result, lhs, expression) \
  auto result = (expression);                           \
  if (!result.ok()) return result.status();             \
  lhs = std::move(result.value())

#endif  // TARN_CORE_RESULT_H_
