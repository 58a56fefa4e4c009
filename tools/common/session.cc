#include "tools/common/session.h"

#include "tools/common/failure.h"
#include "tools/common/signals.h"

namespace tarn::tools {

void Check(tarn_status status, const tarn_error& error) {
  if (status == TARN_CANCELLED) throw Failure("interrupted");
  if (status != TARN_OK) throw Failure(error.message);
}

void SessionDestroyer::operator()(tarn_session* session) const {
  DoNotCancel(session);
  tarn_session_destroy(session);
}

Session CreateSession(const tarn_model* model, const tarn_session_config& config) {
  tarn_session* session = nullptr;
  tarn_error error;
  Check(tarn_session_create(model, &config, &session, &error), error);
  CancelWhenInterrupted(session);
  return Session(session);
}

}  // namespace tarn::tools
