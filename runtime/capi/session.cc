// C API: sessions. Translation only.
#include "runtime/session/session.h"

#include <algorithm>

#include "runtime/capi/handles.h"

namespace tarn {

Result<Limits> ReadLimits(const LoadedModel& model, const tarn_session_config* user) {
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  constexpr uint32_t kDefaultChunk = 64;
  constexpr uint64_t kDefaultSource = 512;
  const bool has_sources = model.model().program(Stage::kEncode) != nullptr;
  const uint32_t longest = has_sources ? static_cast<uint32_t>(std::min(kDefaultSource, model.bound(Stage::kEncode).tokens)) : 0;
  Limits limits{};
  limits.beams = OrDefault(config.beams, uint32_t{1});
  const uint64_t sequences = uint64_t{OrDefault(config.batch, uint32_t{1})} * limits.beams;
  limits.batch = static_cast<uint32_t>(std::min<uint64_t>(sequences, UINT32_MAX));  // too many either way
  limits.max_chunk = OrDefault(config.max_chunk, kDefaultChunk);
  limits.max_output_rows = OrDefault(config.max_logits_rows, uint32_t{1});
  limits.max_source = OrDefault(config.max_source, longest);
  limits.threads = OrDefault(config.threads, uint32_t{1});
  return limits;
}

namespace {

// A tarn_session is a Session by another name.
Session* Of(tarn_session* session) { return reinterpret_cast<Session*>(session); }
const Session* Of(const tarn_session* session) { return reinterpret_cast<const Session*>(session); }

Status CreateSession(const tarn_model* model, const tarn_session_config* user, tarn_session** session) {
  if (model == nullptr) return NullArgument("model");
  if (session == nullptr) return NullArgument("session");
  TARN_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(model->loaded, user));
  tarn_session_config config = TARN_SESSION_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  const Span<uint8_t> block(static_cast<uint8_t*>(config.block), config.block_bytes);
  TARN_ASSIGN_OR_RETURN(Session * created, Session::Create(model->loaded, limits, block));
  *session = reinterpret_cast<tarn_session*>(created);
  return Ok();
}

Status CheckSources(const tarn_session* session, const int32_t* tokens, const size_t* lengths) {
  if (session == nullptr) return NullArgument("session");
  if (tokens == nullptr) return NullArgument("tokens");
  return lengths == nullptr ? NullArgument("lengths") : Ok();
}

Status Encode(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths) {
  TARN_RETURN_IF_ERROR(CheckSources(session, tokens, lengths));
  return Of(session)->Encode(tokens, stride, lengths);
}

Status Classify(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths, const float** logits) {
  TARN_RETURN_IF_ERROR(CheckSources(session, tokens, lengths));
  if (logits == nullptr) return NullArgument("logits");
  TARN_ASSIGN_OR_RETURN(*logits, Of(session)->Classify(tokens, stride, lengths));
  return Ok();
}

Status Fill(tarn_session* session, const int32_t* tokens, size_t count, const uint32_t* positions, size_t position_count,
            const float** logits) {
  if (session == nullptr) return NullArgument("session");
  if (tokens == nullptr) return NullArgument("tokens");
  if (positions == nullptr) return NullArgument("positions");
  if (logits == nullptr) return NullArgument("logits");
  TARN_ASSIGN_OR_RETURN(*logits, Of(session)->Fill(tokens, count, {positions, position_count}));
  return Ok();
}

Status Reorder(tarn_session* session, const uint32_t* parents) {
  if (session == nullptr) return NullArgument("session");
  return parents == nullptr ? NullArgument("parents") : Of(session)->Reorder(parents);
}

Span<const uint8_t> BytesOf(const void* memory, uint64_t size_bytes) {
  return {static_cast<const uint8_t*>(memory), SizeOf(size_bytes)};
}

Status Save(const tarn_session* session, void* snapshot, uint64_t size_bytes, bool is_compact) {
  if (session == nullptr) return NullArgument("session");
  if (snapshot == nullptr) return NullArgument("snapshot");
  return Of(session)->Save({static_cast<uint8_t*>(snapshot), SizeOf(size_bytes)}, is_compact);
}

Status Restore(tarn_session* session, const void* snapshot, uint64_t size_bytes) {
  if (session == nullptr) return NullArgument("session");
  if (snapshot == nullptr) return NullArgument("snapshot");
  return Of(session)->Restore(BytesOf(snapshot, size_bytes));
}

Status CheckDelta(const tarn_session* session, const void* base, const void* third, const char* name) {
  if (session == nullptr) return NullArgument("session");
  if (base == nullptr) return NullArgument("base");
  return third == nullptr ? NullArgument(name) : Ok();
}

Status DeltaBytes(const tarn_session* session, const void* base, uint64_t base_bytes, uint64_t* delta_bytes) {
  TARN_RETURN_IF_ERROR(CheckDelta(session, base, delta_bytes, "delta_bytes"));
  TARN_ASSIGN_OR_RETURN(*delta_bytes, Of(session)->DeltaBytes(BytesOf(base, base_bytes)));
  return Ok();
}

Status SaveDelta(const tarn_session* session, const void* base, uint64_t base_bytes, void* delta, uint64_t size_bytes) {
  TARN_RETURN_IF_ERROR(CheckDelta(session, base, delta, "delta"));
  return Of(session)->SaveDelta(BytesOf(base, base_bytes), {static_cast<uint8_t*>(delta), SizeOf(size_bytes)});
}

Status RestoreDelta(tarn_session* session, const void* base, uint64_t base_bytes, const void* delta, uint64_t size_bytes) {
  TARN_RETURN_IF_ERROR(CheckDelta(session, base, delta, "delta"));
  return Of(session)->RestoreDelta(BytesOf(base, base_bytes), BytesOf(delta, size_bytes));
}

Status Copy(tarn_session* session, const tarn_session* from) {
  if (session == nullptr) return NullArgument("session");
  return from == nullptr ? NullArgument("from") : Of(session)->CopyFrom(*Of(from));
}

Status CopySequence(tarn_session* session, uint32_t sequence, const tarn_session* from, uint32_t from_sequence) {
  if (session == nullptr) return NullArgument("session");
  return from == nullptr ? NullArgument("from") : Of(session)->CopySequence(sequence, *Of(from), from_sequence);
}

Status Prefill(tarn_session* session, const int32_t* tokens, size_t count, const Progress& progress, const float** logits) {
  if (session == nullptr) return NullArgument("session");
  if (tokens == nullptr) return NullArgument("tokens");
  TARN_ASSIGN_OR_RETURN(const float* result, Of(session)->Prefill(tokens, count, progress));
  if (logits != nullptr) *logits = result;
  return Ok();
}

Status Score(tarn_session* session, const int32_t* tokens, size_t count, const float** logits) {
  if (session == nullptr) return NullArgument("session");
  if (tokens == nullptr) return NullArgument("tokens");
  TARN_ASSIGN_OR_RETURN(const float* result, Of(session)->Score(tokens, count));
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
  return tarn::Report(tarn::Prefill(session, tokens, count, {}, logits), error);
}

tarn_status tarn_session_prefill_progress(tarn_session* session, const int32_t* tokens, size_t count,
                                          int (*go_on)(void* context, size_t done, size_t total), void* context,
                                          const float** logits, tarn_error* error) {
  return tarn::Report(tarn::Prefill(session, tokens, count, {go_on, context}, logits), error);
}

tarn_status tarn_session_step(tarn_session* session, const int32_t* tokens, const float** logits, tarn_error* error) {
  return tarn_session_prefill(session, tokens, 1, logits, error);
}

tarn_status tarn_session_score(tarn_session* session, const int32_t* tokens, size_t count, const float** logits,
                               tarn_error* error) {
  return tarn::Report(tarn::Score(session, tokens, count, logits), error);
}

tarn_status tarn_session_encode(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths,
                                tarn_error* error) {
  return tarn::Report(tarn::Encode(session, tokens, stride, lengths), error);
}

tarn_status tarn_session_classify(tarn_session* session, const int32_t* tokens, size_t stride, const size_t* lengths,
                                  const float** logits, tarn_error* error) {
  return tarn::Report(tarn::Classify(session, tokens, stride, lengths, logits), error);
}

tarn_status tarn_session_fill(tarn_session* session, const int32_t* tokens, size_t count, const uint32_t* positions,
                              size_t position_count, const float** logits, tarn_error* error) {
  return tarn::Report(tarn::Fill(session, tokens, count, positions, position_count, logits), error);
}

tarn_status tarn_session_reorder(tarn_session* session, const uint32_t* parents, tarn_error* error) {
  return tarn::Report(tarn::Reorder(session, parents), error);
}

void tarn_session_cancel(tarn_session* session) {
  if (session != nullptr) tarn::Of(session)->Cancel();
}

void tarn_session_reset(tarn_session* session) {
  if (session != nullptr) tarn::Of(session)->Reset();
}

uint64_t tarn_session_trim(tarn_session* session) { return session == nullptr ? 0 : tarn::Of(session)->Trim(); }

uint64_t tarn_session_snapshot_bytes(const tarn_session* session) {
  return session == nullptr ? 0 : tarn::Of(session)->SnapshotBytes();
}

tarn_status tarn_session_save(const tarn_session* session, void* snapshot, uint64_t size_bytes, tarn_error* error) {
  return tarn::Report(tarn::Save(session, snapshot, size_bytes, /*is_compact=*/false), error);
}

uint64_t tarn_session_compact_bytes(const tarn_session* session) {
  return session == nullptr ? 0 : tarn::Of(session)->SnapshotBytes(/*is_compact=*/true);
}

tarn_status tarn_session_save_compact(const tarn_session* session, void* snapshot, uint64_t size_bytes, tarn_error* error) {
  return tarn::Report(tarn::Save(session, snapshot, size_bytes, /*is_compact=*/true), error);
}

tarn_status tarn_session_restore(tarn_session* session, const void* snapshot, uint64_t size_bytes, tarn_error* error) {
  return tarn::Report(tarn::Restore(session, snapshot, size_bytes), error);
}

tarn_status tarn_session_delta_bytes(const tarn_session* session, const void* base, uint64_t base_bytes, uint64_t* delta_bytes,
                                     tarn_error* error) {
  return tarn::Report(tarn::DeltaBytes(session, base, base_bytes, delta_bytes), error);
}

tarn_status tarn_session_save_delta(const tarn_session* session, const void* base, uint64_t base_bytes, void* delta,
                                    uint64_t size_bytes, tarn_error* error) {
  return tarn::Report(tarn::SaveDelta(session, base, base_bytes, delta, size_bytes), error);
}

tarn_status tarn_session_restore_delta(tarn_session* session, const void* base, uint64_t base_bytes, const void* delta,
                                       uint64_t size_bytes, tarn_error* error) {
  return tarn::Report(tarn::RestoreDelta(session, base, base_bytes, delta, size_bytes), error);
}

tarn_status tarn_session_copy(tarn_session* session, const tarn_session* from, tarn_error* error) {
  return tarn::Report(tarn::Copy(session, from), error);
}

tarn_status tarn_session_copy_sequence(tarn_session* session, uint32_t sequence, const tarn_session* from, uint32_t from_sequence,
                                       tarn_error* error) {
  return tarn::Report(tarn::CopySequence(session, sequence, from, from_sequence), error);
}

uint64_t tarn_session_tokens(const tarn_session* session) {
  return session == nullptr ? 0 : tarn::Of(session)->instance().tokens_seen();
}
