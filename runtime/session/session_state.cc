// The state of a session as plain memory: checkpoints in this process, and forks. A snapshot (snapshot.cc) has the same with a
// format and a hash.
#include <cstring>

#include "runtime/session/session.h"

namespace tarn {
namespace {

bool BelongsToSource(const LoadedModel& model, uint32_t state) { return model.model().state(state).owner == format::Owner::Source; }

}  // namespace

uint64_t Session::StateBytes() const {
  uint64_t bytes = instance_->limits().batch * sizeof(uint64_t) + instance_->source_tokens().size() * sizeof(uint32_t);
  for (uint32_t i = 0; i < instance_->state_count(); ++i) bytes += instance_->state_bytes(i).size();
  return bytes;
}

void Session::CopyState(uint8_t* state) const {
  for (uint32_t i = 0; i < instance_->limits().batch; ++i) {
    const uint64_t tokens = instance_->tokens_seen(i);
    std::memcpy(state, &tokens, sizeof(tokens));
    state += sizeof(tokens);
  }
  for (const uint32_t length : instance_->source_tokens()) {
    std::memcpy(state, &length, sizeof(length));
    state += sizeof(length);
  }
  for (uint32_t i = 0; i < instance_->state_count(); ++i) {
    const Span<uint8_t> bytes = instance_->state_bytes(i);
    std::memcpy(state, bytes.data(), bytes.size());
    state += bytes.size();
  }
}

void Session::SetState(const uint8_t* state) {
  instance_->cancellation().Withdraw();
  for (uint32_t i = 0; i < instance_->limits().batch; ++i) {
    uint64_t tokens;
    std::memcpy(&tokens, state, sizeof(tokens));
    instance_->SetTokens(i, tokens);
    state += sizeof(tokens);
  }
  for (uint32_t i = 0; i < instance_->source_tokens().size(); ++i) {
    uint32_t length;
    std::memcpy(&length, state, sizeof(length));
    instance_->SetSourceTokens(i, length);
    state += sizeof(length);
  }
  for (uint32_t i = 0; i < instance_->state_count(); ++i) {
    const Span<uint8_t> bytes = instance_->state_bytes(i);
    std::memcpy(bytes.data(), state, bytes.size());
    state += bytes.size();
  }
}

// That what one sequence, or one source, has in `from` has its place here.
Status Session::CheckStates(const Session& from) const {
  if (&from.model_ != &model_) return Error(TARN_INVALID_ARGUMENT, "the session is of another model, one of the same expected");
  for (uint32_t i = 0; i < instance_->state_count(); ++i) {
    if (instance_->state(i).bytes_per_sequence == from.instance_->state(i).bytes_per_sequence) continue;
    return Error(TARN_INVALID_ARGUMENT, "max_source is %u, %u expected: the sessions must have the same",
                 from.instance_->limits().max_source, instance_->limits().max_source);
  }
  return Ok();
}

Status Session::CopyFrom(const Session& from) {
  TARN_RETURN_IF_ERROR(from.MakeWhole());
  TARN_RETURN_IF_ERROR(CheckStates(from));
  const Limits &here = instance_->limits(), &there = from.instance_->limits();
  if (here.batch != there.batch) {
    return Error(TARN_INVALID_ARGUMENT, "sequences is %u, %u expected: batch * beams of the session", there.batch, here.batch);
  }
  if (!instance_->source_tokens().empty() && here.beams != there.beams) {
    return Error(TARN_INVALID_ARGUMENT, "beams is %u, %u expected", there.beams, here.beams);
  }
  if (&from == this) return Ok();
  const Span<const uint32_t> lengths = from.instance_->source_tokens();
  for (uint32_t i = 0; i < here.batch; ++i) instance_->SetTokens(i, from.instance_->tokens_seen(i));
  for (uint32_t i = 0; i < lengths.size(); ++i) instance_->SetSourceTokens(i, lengths[i]);
  instance_->cancellation().Withdraw();
  for (uint32_t i = 0; i < instance_->state_count(); ++i) {
    const Span<uint8_t> bytes = from.instance_->state_bytes(i);
    std::memcpy(instance_->state_bytes(i).data(), bytes.data(), bytes.size());
  }
  return Ok();
}

Status Session::CheckSequencePlaces(uint32_t to, const Session& from, uint32_t sequence) const {
  TARN_RETURN_IF_ERROR(CheckStates(from));
  const Limits &here = instance_->limits(), &there = from.instance_->limits();
  if (to >= here.batch) return Error(TARN_INVALID_ARGUMENT, "to is sequence %u, 0 to %u expected", to, here.batch - 1);
  if (sequence >= there.batch) {
    return Error(TARN_INVALID_ARGUMENT, "from is sequence %u, 0 to %u expected", sequence, there.batch - 1);
  }
  TARN_RETURN_IF_ERROR(from.MakeWhole(sequence));
  return ExpectOwnSource();
}

Status Session::CopySequence(uint32_t to, const Session& from, uint32_t sequence) {
  TARN_RETURN_IF_ERROR(CheckSequencePlaces(to, from, sequence));
  const uint32_t to_source = to / instance_->limits().beams, source = sequence / from.instance_->limits().beams;
  instance_->SetTokens(to, from.instance_->tokens_seen(sequence));
  if (!instance_->source_tokens().empty()) instance_->SetSourceTokens(to_source, from.instance_->source_tokens()[source]);
  if (instance_->limits().batch == 1) instance_->cancellation().Withdraw();
  for (uint32_t i = 0; i < instance_->state_count(); ++i) {
    const bool of_source = BelongsToSource(model_, i);
    const size_t size = static_cast<size_t>(instance_->state(i).bytes_per_sequence);
    std::memmove(instance_->state_bytes(i).data() + (of_source ? to_source : to) * size,
                 from.instance_->state_bytes(i).data() + (of_source ? source : sequence) * size, size);
  }
  return Ok();
}

}  // namespace tarn
