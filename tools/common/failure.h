// How a tool fails: an exception that main() turns into one line and an exit status.
#ifndef TARN_TOOLS_COMMON_FAILURE_H_
#define TARN_TOOLS_COMMON_FAILURE_H_

#include <stdexcept>

namespace tarn::tools {

// The message names the thing, the value found and the value wanted.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_FAILURE_H_
