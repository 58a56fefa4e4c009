// How the tool fails: an exception that main() turns into one line, `tarn: error: ...`, and an exit status.
#ifndef TARN_TOOLS_TARN_ERROR_H_
#define TARN_TOOLS_TARN_ERROR_H_

#include <stdexcept>

#include "tools/common/failure.h"
#include "tools/common/session.h"
#include "tools/common/signals.h"

namespace tarn_cli {

using tarn::tools::Check;
using tarn::tools::Failure;  // exit status 1

// A wrong command line that the parser cannot see by itself: exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where a loop looks at what Ctrl-C, SIGTERM and SIGHUP ask for.
inline void StopIfInterrupted() {
  if (tarn::tools::Interrupted()) throw Failure("interrupted");
}

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_ERROR_H_
