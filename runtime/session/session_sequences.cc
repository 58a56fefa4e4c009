// Sequences of a session that come and go on their own: prompts of different lengths in one call, sequences that stand still, one
// that starts anew or goes to a snapshot and back. A program that runs them in lockstep does not link it.
#include <algorithm>
#include <cstring>

#include "runtime/session/session.h"
#include "runtime/session/snapshot.h"

namespace tarn {
namespace {

size_t Chunks(size_t tokens, size_t max_chunk) { return (tokens + max_chunk - 1) / max_chunk; }

}  // namespace

Status Session::CheckSequence(uint32_t sequence) const {
  const uint32_t batch = instance_->limits().batch;
  if (sequence < batch) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "sequence is %u, 0 to %u expected", sequence, batch - 1);
}

Status Session::CheckPart(const SequenceTokens& part) const {
  const Span<const uint32_t> sources = instance_->source_tokens();
  const uint32_t source = part.sequence / instance_->limits().beams;
  if (!sources.empty() && sources[source] == 0) {
    return Error(TARN_INVALID_ARGUMENT, "source %u is not encoded: encode, restore or copy it first", source);
  }
  if (part.tokens == nullptr) return Error(TARN_INVALID_ARGUMENT, "tokens is NULL");
  TARN_RETURN_IF_ERROR(CheckRoom(instance_->tokens_seen(part.sequence), part.count));
  return CheckIds(part.tokens, part.count, model_.model().vocab_size(Stage::kDecode));
}

// All sequences end in the last run, so that one run has the logits of all of them; those with fewer chunks begin later.
Result<const float*> Session::PrefillSequences(Span<const SequenceTokens> parts, bool wants_logits) {
  TARN_RETURN_IF_ERROR(ExpectDecoder());
  TARN_RETURN_IF_ERROR(ExpectOwnSource());
  if (parts.empty()) return Error(TARN_INVALID_ARGUMENT, "part_count is 0, at least one sequence expected");
  for (size_t i = 0; i < parts.size(); ++i) {
    TARN_RETURN_IF_ERROR(CheckSequence(parts[i].sequence).In("part %zu", i));
    if (i > 0 && parts[i].sequence <= parts[i - 1].sequence) {
      return Error(TARN_INVALID_ARGUMENT, "part %zu is of sequence %u, one above %u expected: in ascending order, each once", i,
                   parts[i].sequence, parts[i - 1].sequence);
    }
    TARN_RETURN_IF_ERROR(MakeWhole(parts[i].sequence));
    TARN_RETURN_IF_ERROR(CheckPart(parts[i]).In("sequence %u", parts[i].sequence));
  }
  const size_t max_chunk = instance_->limits().max_chunk;
  size_t runs = 0;
  for (const SequenceTokens& part : parts) runs = std::max(runs, Chunks(part.count, max_chunk));
  for (size_t left = runs; left-- > 0;) {
    TARN_RETURN_IF_ERROR(TakeCancellation().In("%zu of %zu chunks read", runs - 1 - left, runs));
    const size_t count = TakeChunks(parts, left);
    const Status status = instance_->DecodeParts(count, left == 0 && wants_logits ? 1 : 0, threads_);
    if (status.code() == TARN_CANCELLED) instance_->cancellation().Withdraw();
    TARN_RETURN_IF_ERROR(status);
  }
  return wants_logits ? Logits(Stage::kDecode) : nullptr;
}

// For a run that `left` others follow: the tokens of all sequences that have so many chunks left, and which those are.
size_t Session::TakeChunks(Span<const SequenceTokens> parts, size_t left) {
  const size_t max_chunk = instance_->limits().max_chunk;
  int32_t* ids = reinterpret_cast<int32_t*>(instance_->input(Stage::kDecode, 0));
  size_t count = 0;
  for (const SequenceTokens& part : parts) {
    const size_t chunks = Chunks(part.count, max_chunk);
    if (chunks <= left) continue;
    const size_t begin = (chunks - 1 - left) * max_chunk, tokens = std::min(part.count - begin, max_chunk);
    std::memcpy(ids, part.tokens + begin, tokens * sizeof(int32_t));
    ids += tokens;
    instance_->sequences()[count++] = {0, part.sequence, static_cast<uint32_t>(tokens)};
  }
  return count;
}

Status Session::ResetSequence(uint32_t sequence) {
  TARN_RETURN_IF_ERROR(CheckSequence(sequence));
  if (instance_->limits().batch == 1) instance_->cancellation().Withdraw();
  instance_->ResetSequence(sequence);
  return Ok();
}

uint64_t Session::SequenceSnapshotBytes(uint32_t sequence) const {
  if (!CheckSequence(sequence).ok() || (instance_->steps_wait() && !MakeWhole().ok())) return 0;
  return tarn::SnapshotBytes(model_, SnapshotScope::One(*instance_, sequence), {}).value();
}

Status Session::SaveSequence(uint32_t sequence, Span<uint8_t> snapshot) const {
  TARN_RETURN_IF_ERROR(CheckSequence(sequence));
  TARN_RETURN_IF_ERROR(MakeWhole(sequence));
  return SaveSnapshot(model_, SnapshotScope::One(*instance_, sequence), {}, snapshot);
}

Status Session::RestoreSequence(uint32_t sequence, Span<const uint8_t> snapshot) {
  TARN_RETURN_IF_ERROR(CheckSequence(sequence));
  TARN_RETURN_IF_ERROR(ExpectOwnSource());
  TARN_RETURN_IF_ERROR(RestoreSnapshot(model_, {}, snapshot, SnapshotScope::One(*instance_, sequence), instance_));
  if (instance_->limits().batch == 1) instance_->cancellation().Withdraw();
  return Ok();
}

}  // namespace tarn
