// C API: sessions. Translation only.
#include "runtime/session/session.h"

#include "runtime/capi/handles.h"

namespace tarn {

Result<Limits> ReadLimits(const tarn_session_config* user) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  const auto or_default = [](uint32_t value, uint32_t zero_means) { return value == 0 ? zero_means : value; };
  constexpr uint32_t kDefaultChunk = 64;
  return Limits{or_default(config.batch, 1), or_default(config.max_chunk, kDefaultChunk), or_default(config.max_logits_rows, 1),
                or_default(config.threads, 1)};
}

namespace {

// A tarn_session is a Session by another name.
Session* Of(tarn_session* session) { return reinterpret_cast<Session*>(session); }
const Session* Of(const tarn_session* session) { return reinterpret_cast<const Session*>(session); }

Status CreateSession(const tarn_model* model, const tarn_session_config* user, tarn_session** session) {
  if (model == nullptr) return NullArgument("model");
  if (session == nullptr) return NullArgument("session");
  TARN_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(user));
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  if (config.block == nullptr && config.block_bytes != 0) {
    return Error(TARN_INVALID_ARGUMENT, "block is NULL, block_bytes is %zu", config.block_bytes);
  }
  const Span<uint8_t> block(static_cast<uint8_t*>(config.block), config.block_bytes);
  TARN_ASSIGN_OR_RETURN(Session * created, Session::Create(model->loaded, limits, block));
  *session = reinterpret_cast<tarn_session*>(created);
  return Ok();
}

enum class Rows { kLast, kAll };

Status Feed(tarn_session* session, const int32_t* tokens, size_t count, Rows rows, const float** logits) {
  if (session == nullptr) return NullArgument("session");
  if (tokens == nullptr) return NullArgument("tokens");
  Session* fed = Of(session);
  TARN_ASSIGN_OR_RETURN(const float* result, rows == Rows::kAll ? fed->Score(tokens, count) : fed->Prefill(tokens, count));
  if (logits != nullptr) *logits = result;
  return Ok();
}

}  // namespace
}  // namespace tarn

tarn_status tarn_session_create(const tarn_model* model, const tarn_session_config* config, tarn_session** session,
                                tarn_error* error) {
  return tarn::Report(tarn::CreateSession(model, config, session), error);
}

void tarn_session_destroy(tarn_session* session) {
  if (session != nullptr) tarn::Session::Destroy(tarn::Of(session));
}

tarn_status tarn_session_prefill(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                                 tarn_error* error) {
  return tarn::Report(tarn::Feed(session, tokens, count, tarn::Rows::kLast, logits), error);
}

tarn_status tarn_session_step(tarn_session* session, const int32_t* tokens, const float** logits, tarn_error* error) {
  return tarn_session_prefill(session, tokens, 1, logits, error);
}

tarn_status tarn_session_score(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                               tarn_error* error) {
  return tarn::Report(tarn::Feed(session, tokens, count, tarn::Rows::kAll, logits), error);
}

void tarn_session_reset(tarn_session* session) {
  if (session != nullptr) tarn::Of(session)->Reset();
}

uint64_t tarn_session_tokens(const tarn_session* session) {
  return session == nullptr ? 0 : tarn::Of(session)->program().tokens_seen();
}
