// C API: sequences of a session that come and go on their own. Translation only.
#include <cstddef>

#include "runtime/capi/handles.h"
#include "runtime/session/session.h"

namespace tarn {
namespace {

// A tarn_session is a Session by another name, and so are the tokens for a sequence.
Session* Of(tarn_session* session) { return reinterpret_cast<Session*>(session); }
const Session* Of(const tarn_session* session) { return reinterpret_cast<const Session*>(session); }

static_assert(sizeof(SequenceTokens) == sizeof(tarn_sequence_tokens) &&
              offsetof(SequenceTokens, sequence) == offsetof(tarn_sequence_tokens, sequence) &&
              offsetof(SequenceTokens, tokens) == offsetof(tarn_sequence_tokens, tokens) &&
              offsetof(SequenceTokens, count) == offsetof(tarn_sequence_tokens, count));

Status Prefill(tarn_session* session, const tarn_sequence_tokens* parts, size_t part_count, const float** logits) {
  if (session == nullptr) return NullArgument("session");
  if (parts == nullptr) return NullArgument("parts");
  const Span<const SequenceTokens> all(reinterpret_cast<const SequenceTokens*>(parts), part_count);
  TARN_ASSIGN_OR_RETURN(const float* result, Of(session)->PrefillSequences(all, /*wants_logits=*/logits != nullptr));
  if (logits != nullptr) *logits = result;
  return Ok();
}

Status Reset(tarn_session* session, uint32_t sequence) {
  return session == nullptr ? NullArgument("session") : Of(session)->ResetSequence(sequence);
}

Status Save(const tarn_session* session, uint32_t sequence, void* snapshot, uint64_t size_bytes) {
  if (session == nullptr) return NullArgument("session");
  if (snapshot == nullptr) return NullArgument("snapshot");
  return Of(session)->SaveSequence(sequence, {static_cast<uint8_t*>(snapshot), SizeOf(size_bytes)});
}

Status Restore(tarn_session* session, uint32_t sequence, const void* snapshot, uint64_t size_bytes) {
  if (session == nullptr) return NullArgument("session");
  if (snapshot == nullptr) return NullArgument("snapshot");
  return Of(session)->RestoreSequence(sequence, {static_cast<const uint8_t*>(snapshot), SizeOf(size_bytes)});
}

}  // namespace
}  // namespace tarn

tarn_status tarn_session_prefill_sequences(tarn_session* session, const tarn_sequence_tokens* parts, size_t part_count,
                                           const float** logits, tarn_error* error) {
  return tarn::Report(tarn::Prefill(session, parts, part_count, logits), error);
}

tarn_status tarn_session_reset_sequence(tarn_session* session, uint32_t sequence, tarn_error* error) {
  return tarn::Report(tarn::Reset(session, sequence), error);
}

uint64_t tarn_session_sequence_tokens(const tarn_session* session, uint32_t sequence) {
  if (session == nullptr) return 0;
  const tarn::Instance& instance = tarn::Of(session)->instance();
  return sequence < instance.limits().batch ? instance.tokens_seen(sequence) : 0;
}

uint64_t tarn_session_sequence_snapshot_bytes(const tarn_session* session, uint32_t sequence) {
  return session == nullptr ? 0 : tarn::Of(session)->SequenceSnapshotBytes(sequence);
}

tarn_status tarn_session_save_sequence(const tarn_session* session, uint32_t sequence, void* snapshot, uint64_t size_bytes,
                                       tarn_error* error) {
  return tarn::Report(tarn::Save(session, sequence, snapshot, size_bytes), error);
}

tarn_status tarn_session_restore_sequence(tarn_session* session, uint32_t sequence, const void* snapshot, uint64_t size_bytes,
                                          tarn_error* error) {
  return tarn::Report(tarn::Restore(session, sequence, snapshot, size_bytes), error);
}
