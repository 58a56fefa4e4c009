#include "runtime/generation/speculation.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/platform/clock.h"

namespace tarn {
namespace {

constexpr uint32_t kMostHistory = 1u << 24;

uint32_t PowerOfTwo(uint32_t least) {
  uint32_t power = NgramDrafts::kLeastCapacity;
  while (power < least) power *= 2;
  return power;
}

Status CheckDraft(const Session& session, uint32_t vocab_size) {
  TARN_RETURN_IF_ERROR(session.MaxSteps().status());
  const uint32_t found = session.model().model().vocab_size(Stage::kDecode);
  if (found == vocab_size) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "vocab_size is %u, %u expected: that of the model", found, vocab_size);
}

}  // namespace

Status Speculation::Check() {
  TARN_ASSIGN_OR_RETURN(const uint32_t steps, session_->MaxSteps());
  vocab_size_ = session_->model().model().vocab_size(Stage::kDecode);
  if (steps < 2) {
    const Limits& limits = session_->instance().limits();
    return Error(TARN_INVALID_ARGUMENT,
                 "the session has max_chunk %u and max_logits_rows %u, 2 expected at least: a token and the drafts behind it",
                 limits.max_chunk, limits.max_output_rows);
  }
  if (config_.max_draft >= steps) {
    return Error(TARN_INVALID_ARGUMENT,
                 "max_draft is %u, at most %u expected: the session has rows for %u tokens (max_logits_rows)", config_.max_draft,
                 steps - 1, steps);
  }
  if (config_.max_draft == 0) config_.max_draft = std::min(steps - 1, kMostDrafts);
  if (config_.history_tokens > kMostHistory) {
    return Error(TARN_INVALID_ARGUMENT, "history_tokens is %u, at most %u expected", config_.history_tokens, kMostHistory);
  }
  if (!(config_.row_cost >= 0)) {
    return Error(TARN_INVALID_ARGUMENT, "row_cost is %g, a number >= 0 expected", static_cast<double>(config_.row_cost));
  }
  if ((picker_.sampler == nullptr) == (picker_.pick == nullptr)) {
    return Error(TARN_INVALID_ARGUMENT, "sampler and pick: one of them expected");
  }
  if (picker_.sampler != nullptr && picker_.sampler->vocab_size() != vocab_size_) {
    return Error(TARN_INVALID_ARGUMENT, "the sampler is for %u tokens, the model has %u", picker_.sampler->vocab_size(),
                 vocab_size_);
  }
  if (config_.draft == nullptr) return Ok();
  if (config_.draft == session_) return Error(TARN_INVALID_ARGUMENT, "draft is the session itself, another one expected");
  TARN_RETURN_IF_ERROR(CheckDraft(*config_.draft, vocab_size_).In("draft"));
  model_.Use(config_.draft, picker_.sampler, vocab_size_);
  return Ok();
}

void Speculation::TakeArrays(Bump* bump) {
  ngrams_.TakeArrays(bump, PowerOfTwo(config_.history_tokens));
  model_.TakeArrays(bump);
  session_->TakeStepLog(bump, config_.max_draft + 1, &log_);
  call_ = TakeArray<int32_t>(*bump, config_.max_draft + 1);
  probabilities_ = TakeArray<float>(*bump, config_.max_draft);
}

Result<uint64_t> Speculation::Measure(Session* session, const Picker& picker, const SpeculationConfig& config) {
  Speculation measured(session, picker, config);
  TARN_RETURN_IF_ERROR(measured.Check());
  Bump bump;
  bump.Take(sizeof(Speculation));
  measured.TakeArrays(&bump);
  if (bump.used() > SIZE_MAX) {
    return Error(TARN_OUT_OF_MEMORY, "%llu bytes of speculation", static_cast<unsigned long long>(bump.used()));
  }
  return bump.used();
}

Result<Speculation*> Speculation::Create(Session* session, const Picker& picker, const SpeculationConfig& config,
                                         const BlockSource& memory) {
  TARN_ASSIGN_OR_RETURN(const uint64_t bytes, Measure(session, picker, config));
  TARN_ASSIGN_OR_RETURN(Block block, Block::From(memory, bytes, "speculation"));
  Bump bump(block.bytes());
  auto* created = new (bump.Take(sizeof(Speculation))) Speculation(session, picker, config);
  TARN_RETURN_IF_ERROR(created->Check());
  created->TakeArrays(&bump);
  created->block_ = std::move(block);
  return created;
}

void Speculation::Destroy(Speculation* speculation) {
  if (speculation == nullptr) return;
  (void)speculation->session_->MakeWhole();            // of steps that wait in the log; if that fails, the next call says so
  const Block block = std::move(speculation->block_);  // outlives the object that lies in it
  speculation->~Speculation();
}

void Speculation::Reset() {
  ngrams_.Clear();
  model_.Reset();
  has_token_ = false;
}

Status Speculation::Read(const int32_t* tokens, size_t count) {
  TARN_RETURN_IF_ERROR(CheckIds(tokens, count, vocab_size_));
  Add(tokens, count);
  return Ok();
}

void Speculation::Add(const int32_t* tokens, size_t count) {
  for (size_t i = 0; i < count; ++i) ngrams_.Add(tokens[i]);
  model_.Read(tokens, count);
}

// Drafts that have a place: in what the caller takes, and in the session.
size_t Speculation::Room(size_t capacity) const {
  const Instance& instance = session_->instance();
  const uint64_t left = instance.program(Stage::kDecode)->bound().tokens - instance.tokens_seen();
  return static_cast<size_t>(std::min<uint64_t>({config_.max_draft, capacity - 1, left == 0 ? 0 : left - 1}));
}

size_t Speculation::FindDrafts(size_t most) {
  from_model_ = false;
  if (costs_.wants_step()) return 0;
  int32_t* const drafts = call_.data() + 1;
  const size_t found = ngrams_.Draft(most, drafts, probabilities_.data());
  const DraftCosts::Choice copied = costs_.Choose(probabilities_.data(), found);
  if (!model_.is_used()) return copied.drafts;
  const bool is_worth = model_.rate() >= DraftCosts::kLeastRate;
  if (is_worth ? model_.rate() <= copied.rate : copied.drafts > 0 || !model_.is_due()) return copied.drafts;
  model_.WasWorthIt(is_worth);
  const size_t drafted = model_.Draft(most, costs_, drafts);
  from_model_ = drafted > 0;
  return from_model_ ? drafted : copied.drafts;  // a draft that is not worth its row is not written
}

Status Speculation::Pick(const float* logits, int32_t* token) {
  if (picker_.sampler != nullptr) return picker_.sampler->Sample(logits, token);
  *token = picker_.pick(picker_.context, logits, vocab_size_);
  if (*token >= 0 && static_cast<uint32_t>(*token) < vocab_size_) return Ok();
  return Error(TARN_INVALID_ARGUMENT, "pick gave token %d, 0 to %u expected", *token, vocab_size_ - 1);
}

bool Speculation::Ends(int32_t token, const float* logits) {
  const bool ends = picker_.on_token != nullptr && picker_.on_token(picker_.context, token, logits) != 0;
  return ends || (picker_.sampler != nullptr && picker_.sampler->is_complete());
}

Status Speculation::Step(int32_t token, int32_t* tokens, size_t capacity, size_t* count) {
  *count = 0;
  if (capacity == 0) return Error(TARN_INVALID_ARGUMENT, "capacity is 0, at least 1 expected");
  TARN_RETURN_IF_ERROR(CheckIds(&token, 1, vocab_size_));
  if (!has_token_) Add(&token, 1);
  has_token_ = true;
  call_[0] = token;
  const uint64_t begin = MonotonicNs();
  const size_t drafts = FindDrafts(Room(capacity));
  if (drafts == 0) TARN_RETURN_IF_ERROR(session_->MakeWhole());  // steps that wait are not a part of the time of a step
  uint64_t start = MonotonicNs();
  const Result<const float*> rows = session_->Steps(call_.data(), drafts + 1, &log_);
  if (!rows.ok()) {
    if (from_model_) model_.Forget();
    return rows.status();
  }
  has_token_ = false;
  const uint64_t run_ns = MonotonicNs() - start, draft_ns = start - begin;

  Status picked;
  size_t read = 0;  // rows: the token, and drafts that were accepted
  for (bool goes_on = true; goes_on;) {
    const float* const logits = rows.value() + read * vocab_size_;
    ++read;
    picked = Pick(logits, &tokens[*count]);
    if (!picked.ok()) break;
    const int32_t next = tokens[(*count)++];
    goes_on = !Ends(next, logits) && read <= drafts && next == call_[read];
  }

  start = MonotonicNs();
  session_->KeepSteps(read, &log_);
  const uint64_t ns = run_ns + (MonotonicNs() - start);
  costs_.Note(drafts + 1, ns);
  for (size_t i = 1; i < read; ++i) ngrams_.Add(call_[i]);
  if (from_model_) {
    model_.Keep(read - 1, call_.data() + 1, draft_ns + ns, costs_);
  } else {
    for (size_t i = 1; i < read; ++i) model_.Add(call_[i]);
  }
  ++stats_.runs;
  stats_.drafted += drafts;
  stats_.accepted += read - 1;
  return picked;
}

}  // namespace tarn
