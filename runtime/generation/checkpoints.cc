#include "runtime/generation/checkpoints.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tarn {
namespace {

using Ull = unsigned long long;

}  // namespace

Status Checkpoints::Check() const {
  if (batch() > 1 && (generation_.sampler != nullptr || generation_.grammar != nullptr || generation_.text != nullptr)) {
    return Error(TARN_INVALID_ARGUMENT, "the session has %zu sequences, 1 expected with a sampler, a grammar or a text stream",
                 batch());
  }
  if (generation_.sampler != nullptr && generation_.sampler->mask() != nullptr &&
      generation_.sampler->mask() != generation_.grammar) {
    return Error(TARN_INVALID_ARGUMENT, "grammar is %s, that of the sampler expected",
                 generation_.grammar == nullptr ? "NULL" : "another one");
  }
  if (config_.log_tokens == 0) return Error(TARN_INVALID_ARGUMENT, "log_tokens is 0, at least 1 expected");
  if (config_.spacing == 0) return Error(TARN_INVALID_ARGUMENT, "spacing is 0, at least 1 expected");
  return Ok();
}

Checkpoints::Places Checkpoints::LayCheckpoint() const {
  Places places{};
  places.logits = AlignUp(generation_.session->StateBytes());
  places.sampler = places.logits + AlignUp(uint64_t{batch()} * generation_.vocab_size * sizeof(float));
  places.text = places.sampler + (generation_.sampler == nullptr ? 0 : generation_.sampler->state_bytes());
  places.grammar = places.text + text_bytes();
  places.end = AlignUp(places.grammar + (generation_.grammar == nullptr ? 0 : config_.grammar_bytes));
  return places;
}

size_t Checkpoints::point_bytes() const { return (generation_.sampler == nullptr ? 0 : sizeof(Sampler::Point)) + text_bytes(); }

size_t Checkpoints::text_bytes() const { return generation_.text == nullptr ? 0 : generation_.text->state_bytes(); }

void Checkpoints::TakeArrays(Bump* bump, uint32_t capacity) {
  const Limits& limits = generation_.session->instance().limits();
  slot_bytes_ = LayCheckpoint().end;
  ring_.TakeArrays(bump, capacity);
  log_.TakeArrays(bump, config_.log_tokens, batch(), point_bytes());
  call_ = TakeArray<int32_t>(*bump, uint64_t{limits.batch} * limits.max_chunk);
  point_ = TakeArray<uint8_t>(*bump, point_bytes());
  dropped_ = TakeArray<char>(*bump, generation_.text == nullptr ? 0 : generation_.text->max_bytes());
  slots_ = TakeArray<uint8_t>(*bump, slot_bytes_ * capacity);
}

Result<CheckpointsBytes> Checkpoints::Measure(const Generation& generation, const CheckpointsConfig& config) {
  Checkpoints measured(generation, config);
  TARN_RETURN_IF_ERROR(measured.Check());
  CheckpointsBytes bytes{};
  bytes.checkpoint = measured.LayCheckpoint().end;
  const uint64_t capacity = std::min<uint64_t>(config.ring_bytes / bytes.checkpoint, UINT32_MAX);
  if (capacity == 0) {
    return Error(TARN_INVALID_ARGUMENT, "ring_bytes is %llu, a checkpoint takes %llu", static_cast<Ull>(config.ring_bytes),
                 static_cast<Ull>(bytes.checkpoint));
  }
  bytes.capacity = static_cast<uint32_t>(capacity);
  bytes.log =
      SaturatingMul(config.log_tokens, sizeof(TokenLog::Entry) + measured.batch() * sizeof(int32_t) + measured.point_bytes());
  // So far from the end of the numbers that the rest of the block does not overflow.
  const uint64_t most = SaturatingAdd(SaturatingMul(bytes.checkpoint, capacity), bytes.log);
  if (most > UINT64_MAX / 2) return Error(TARN_OUT_OF_MEMORY, "%llu bytes of checkpoints or more", static_cast<Ull>(most));
  Bump bump;
  bump.Take(sizeof(Checkpoints));
  measured.TakeArrays(&bump, bytes.capacity);
  bytes.total = bump.used();
  if (bytes.total > SIZE_MAX) return Error(TARN_OUT_OF_MEMORY, "%llu bytes of checkpoints", static_cast<Ull>(bytes.total));
  return bytes;
}

Result<Checkpoints*> Checkpoints::Create(const Generation& generation, const CheckpointsConfig& config, const BlockSource& memory) {
  TARN_ASSIGN_OR_RETURN(const CheckpointsBytes bytes, Measure(generation, config));
  TARN_ASSIGN_OR_RETURN(Block block, Block::From(memory, bytes.total, "checkpoints"));
  Bump bump(block.bytes());
  auto* created = new (bump.Take(sizeof(Checkpoints))) Checkpoints(generation, config);
  created->TakeArrays(&bump, bytes.capacity);
  created->block_ = std::move(block);
  const Status status = created->Restart();
  if (status.ok()) return created;
  Destroy(created);
  return status;
}

void Checkpoints::Destroy(Checkpoints* checkpoints) {
  if (checkpoints == nullptr) return;
  const Block block = std::move(checkpoints->block_);  // outlives the object that lies in it
  checkpoints->~Checkpoints();
}

Status Checkpoints::Restart() {
  TARN_RETURN_IF_ERROR(generation_.session->MakeWhole());
  TARN_RETURN_IF_ERROR(generation_.session->ExpectLockstep());
  ring_.Clear();
  log_.Restart(generation_.session->instance().tokens_seen());
  NotePoint();
  if (GrammarFits()) Fill(ring_.Add(position(), /*has_tag=*/false, 0), nullptr);
  return Ok();
}

// ---- now ----

void Checkpoints::SavePoint(uint8_t* point) const {
  if (generation_.sampler != nullptr) {
    const Sampler::Point sampler = generation_.sampler->point();
    std::memcpy(point, &sampler, sizeof(sampler));
    point += sizeof(sampler);
  }
  if (generation_.text != nullptr) generation_.text->Save(point);
}

void Checkpoints::NotePoint() {
  SavePoint(point_.data());
  if (generation_.text != nullptr) text_counts_ = generation_.text->counts();
}

void Checkpoints::NotePointOfLast() {
  NotePoint();
  if (log_.begin() < log_.end() && !point_.empty()) {
    std::memcpy(log_.point(log_.At(log_.end() - 1)), point_.data(), point_.size());
  }
}

void Checkpoints::RestorePoint(const uint8_t* point) {
  if (generation_.sampler != nullptr) {
    Sampler::Point sampler = generation_.sampler->point();
    std::memcpy(&sampler, point, sizeof(sampler));
    generation_.sampler->SetPoint(sampler);
    point += sizeof(sampler);
  }
  if (generation_.text != nullptr) generation_.text->Restore(point);
}

void Checkpoints::Fill(Checkpoint* checkpoint, const float* logits) {
  uint8_t* const slot = Slot(*checkpoint);
  const Places places = LayCheckpoint();
  generation_.session->CopyState(slot);
  checkpoint->has_logits = logits != nullptr;
  if (logits != nullptr) {  // which may be those of the checkpoint
    std::memmove(slot + places.logits, logits, batch() * generation_.vocab_size * sizeof(float));
  }
  if (generation_.sampler != nullptr) generation_.sampler->Save(slot + places.sampler);
  if (generation_.text != nullptr) generation_.text->Save(slot + places.text);
  if (generation_.grammar != nullptr) {
    generation_.grammar->Save(slot + places.grammar);
    grammar_tokens_ = generation_.grammar->tokens_read();
  }
}

Status Checkpoints::CheckRecorded(const int32_t* tokens, size_t count) const {
  if (count == 0) return Error(TARN_INVALID_ARGUMENT, "count is 0, at least one token expected");
  TARN_RETURN_IF_ERROR(generation_.session->MakeWhole());
  TARN_RETURN_IF_ERROR(generation_.session->ExpectLockstep());
  const uint64_t seen = generation_.session->instance().tokens_seen();
  if (seen != position() + count) {
    return Error(TARN_INVALID_ARGUMENT, "the session has seen %llu tokens, %llu and %zu expected: record every call, or restart",
                 static_cast<Ull>(seen), static_cast<Ull>(position()), count);
  }
  if (generation_.sampler == nullptr || generation_.sampler->recent().capacity() == 0) return Ok();
  const RecentTokens& recent = generation_.sampler->recent();
  if (recent.size() > 0 && recent[0] == tokens[count - 1]) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "the sampler's last token is %d, %d expected: it must accept what it has not picked",
               recent.size() > 0 ? recent[0] : -1, tokens[count - 1]);
}

// The tokens that a text has taken are the last ones of a call, those of the prompt first.
TextState::How Checkpoints::HowTaken(const TextState::Counts& now, size_t from_end) const {
  const uint64_t feed = now.feed - text_counts_.feed, prompt = now.prompt - text_counts_.prompt;
  if (from_end <= feed) return TextState::How::kFeed;
  return from_end <= feed + prompt ? TextState::How::kPrompt : TextState::How::kNot;
}

Status Checkpoints::Record(const int32_t* tokens, size_t count, const float* logits) {
  TARN_RETURN_IF_ERROR(CheckRecorded(tokens, count));
  const uint64_t grammar_tokens = generation_.grammar == nullptr ? 0 : generation_.grammar->tokens_read();
  const uint64_t in_grammar = grammar_tokens - grammar_tokens_;  // the last ones
  const TextState::Counts text_counts = generation_.text == nullptr ? text_counts_ : generation_.text->counts();
  for (size_t i = 0; i < count; ++i) {
    const size_t place = log_.Add();
    for (size_t sequence = 0; sequence < batch(); ++sequence) log_.tokens(place)[sequence] = tokens[sequence * count + i];
    log_.entry(place) = {i == 0, count - i <= in_grammar, HowTaken(text_counts, count - i)};
    if (i + 1 == count) NotePoint();
    if (!point_.empty()) std::memcpy(log_.point(place), point_.data(), point_.size());
  }
  grammar_tokens_ = grammar_tokens;
  const bool is_due = ring_.size() == 0 || position() - ring_.back().position >= config_.spacing;
  if (config_.spacing == UINT32_MAX || !is_due || !GrammarFits()) return Ok();
  Checkpoint* const added = ring_.Add(position(), /*has_tag=*/false, 0);
  if (added != nullptr) Fill(added, logits);
  return Ok();
}

Status Checkpoints::Mark(uint64_t tag, const float* logits) {
  if (!GrammarFits()) {
    return Error(TARN_CONTEXT_FULL, "the grammar's state has %zu bytes, a checkpoint has room for %u (grammar_bytes)",
                 generation_.grammar->state_bytes(), config_.grammar_bytes);
  }
  TARN_RETURN_IF_ERROR(generation_.session->MakeWhole());
  TARN_RETURN_IF_ERROR(generation_.session->ExpectLockstep());
  const uint64_t seen = generation_.session->instance().tokens_seen();
  if (seen != position()) {
    return Error(TARN_INVALID_ARGUMENT, "the session has seen %llu tokens, %llu expected: record every call, or restart",
                 static_cast<Ull>(seen), static_cast<Ull>(position()));
  }
  NotePointOfLast();
  const bool is_there = ring_.size() > 0 && ring_.back().position == position() && !ring_.back().has_tag;
  Checkpoint* const marked = is_there ? &ring_.back() : ring_.Add(position(), /*has_tag=*/true, tag);
  marked->has_tag = true;
  marked->tag = tag;
  Fill(marked, logits);
  return Ok();
}

// ---- back ----

uint64_t Checkpoints::earliest() const {
  for (size_t i = 0; i < ring_.size(); ++i) {
    if (ring_[i].position >= log_.begin()) return ring_[i].position;
  }
  return position() + 1;
}

Status Checkpoints::TooFar(uint64_t wanted) const {
  if (earliest() > position()) {
    return Error(TARN_NOT_FOUND, "position %llu cannot be rewound to: only those of checkpoints can, of which there are %zu",
                 static_cast<Ull>(wanted), ring_.size());
  }
  if (ring_.size() > 0 && ring_[0].position < earliest()) {
    return Error(TARN_NOT_FOUND,
                 "position %llu is too far back: %llu to %llu can be rewound to, before them checkpoints alone, "
                 "the first at %llu",
                 static_cast<Ull>(wanted), static_cast<Ull>(earliest()), static_cast<Ull>(position()),
                 static_cast<Ull>(ring_[0].position));
  }
  return Error(TARN_NOT_FOUND, "position %llu is too far back: %llu to %llu can be rewound to", static_cast<Ull>(wanted),
               static_cast<Ull>(earliest()), static_cast<Ull>(position()));
}

const float* Checkpoints::LogitsOf(const Checkpoint& checkpoint) const {
  return checkpoint.has_logits ? reinterpret_cast<const float*>(Slot(checkpoint) + LayCheckpoint().logits) : nullptr;
}

void Checkpoints::GoTo(const Checkpoint& checkpoint) {
  const uint8_t* const slot = Slot(checkpoint);
  const Places places = LayCheckpoint();
  generation_.session->SetState(slot);
  if (generation_.sampler != nullptr) generation_.sampler->Restore(slot + places.sampler);
  if (generation_.text != nullptr) generation_.text->Restore(slot + places.text);
  if (generation_.grammar != nullptr) {
    generation_.grammar->Restore(slot + places.grammar);
    grammar_tokens_ = generation_.grammar->tokens_read();
  }
  NotePoint();
  ring_.DropAfter(checkpoint);
}

Result<const float*> Checkpoints::Rewind(uint64_t wanted) {
  if (wanted > position()) {
    return Error(TARN_INVALID_ARGUMENT, "position is %llu, at most %llu expected", static_cast<Ull>(wanted),
                 static_cast<Ull>(position()));
  }
  const Checkpoint* const found = ring_.LastUntil(wanted);
  if (found == nullptr || (found->position < log_.begin() && found->position != wanted)) return TooFar(wanted);
  GoTo(*found);
  if (found->position == wanted) {
    log_.DropBehind(wanted);
    NotePointOfLast();
    return LogitsOf(*found);
  }
  const Result<const float*> logits = Replay(wanted);
  if (!logits.ok()) {
    GoTo(*found);
    log_.DropBehind(found->position);
    NotePointOfLast();
  }
  return logits;
}

Result<const float*> Checkpoints::RewindToTag(uint64_t tag) {
  const Checkpoint* const found = ring_.FindTag(tag);
  if (found == nullptr) return Error(TARN_NOT_FOUND, "no checkpoint has the tag %llu", static_cast<Ull>(tag));
  GoTo(*found);
  log_.DropBehind(found->position);
  NotePointOfLast();
  return LogitsOf(*found);
}

// From where the session is: the calls that it was given, the last of them up to `wanted`.
Result<const float*> Checkpoints::Replay(uint64_t wanted) {
  const uint64_t most = generation_.session->instance().limits().max_chunk;
  const float* logits = nullptr;
  for (uint64_t begin = generation_.session->instance().tokens_seen(); begin < wanted;) {
    const uint64_t limit = std::min(wanted, begin + most);
    uint64_t end = begin + 1;
    while (end < limit && !log_.entry(log_.At(end)).begins_call) ++end;
    TARN_ASSIGN_OR_RETURN(logits, ReplayPiece(begin, static_cast<size_t>(end - begin)));
    begin = end;
  }
  RestorePoint(log_.point(log_.At(wanted - 1)));
  TARN_RETURN_IF_ERROR(ReplayText(wanted));
  if (generation_.grammar != nullptr) grammar_tokens_ = generation_.grammar->tokens_read();
  log_.DropBehind(wanted);
  NotePointOfLast();
  return logits;
}

// In the middle of a call, the text is as it was before the call: it takes the call's tokens up to `wanted`.
Status Checkpoints::ReplayText(uint64_t wanted) {
  if (generation_.text == nullptr || wanted == log_.end() || log_.entry(log_.At(wanted)).begins_call) return Ok();
  uint64_t begin = wanted - 1;
  while (!log_.entry(log_.At(begin)).begins_call) --begin;
  for (; begin < wanted; ++begin) {
    const size_t place = log_.At(begin);
    TARN_RETURN_IF_ERROR(generation_.text->Replay(log_.tokens(place)[0], log_.entry(place).in_text, dropped_));
  }
  return Ok();
}

// The session cuts calls into chunks: a piece is one of those, so that it gets the same bits.
Result<const float*> Checkpoints::ReplayPiece(uint64_t begin, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t* const tokens = log_.tokens(log_.At(begin + i));
    for (size_t sequence = 0; sequence < batch(); ++sequence) call_[sequence * count + i] = tokens[sequence];
    if (generation_.sampler != nullptr) generation_.sampler->Accept(tokens[0]);
    if (log_.entry(log_.At(begin + i)).in_grammar) TARN_RETURN_IF_ERROR(generation_.grammar->Accept(tokens[0]));
  }
  return generation_.session->Prefill(call_.data(), count);
}

}  // namespace tarn
