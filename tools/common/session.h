// A session that Ctrl-C stops in the middle of a call, however long that would take.
#ifndef TARN_TOOLS_COMMON_SESSION_H_
#define TARN_TOOLS_COMMON_SESSION_H_

#include <tarn/tarn.h>

#include <memory>

namespace tarn::tools {

// Throws Failure: the library's own words, or "interrupted" where a signal stopped the call.
void Check(tarn_status status, const tarn_error& error);

struct SessionDestroyer {
  void operator()(tarn_session* session) const;
};
using Session = std::unique_ptr<tarn_session, SessionDestroyer>;

// The signals that CatchInterrupts() catches stop its calls, which then fail with TARN_CANCELLED. Of several sessions that is true
// of the one that was created last. `model` outlives it. Throws Failure.
Session CreateSession(const tarn_model* model, const tarn_session_config& config);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_SESSION_H_
