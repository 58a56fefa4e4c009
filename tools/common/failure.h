// How a tool fails: an exception that main() turns into one line and an exit status.
#ifndef TARN_TOOLS_COMMON_FAILURE_H_
#define TARN_TOOLS_COMMON_FAILURE_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tarn::tools {

// The message names the thing, the value found and the value expected. Details, if there are any, are lines below it.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message, std::vector<std::string> details = {})
      : std::runtime_error(message), details_(std::move(details)) {}

  const std::vector<std::string>& details() const { return details_; }

 private:
  std::vector<std::string> details_;
};

// A value of an option that turns out to be wrong when the files have been read: exit status 2, as of other wrong command lines.
class UsageFailure : public Failure {
 public:
  using Failure::Failure;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_FAILURE_H_
