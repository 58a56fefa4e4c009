#include "runtime/generation/model_drafts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "runtime/platform/clock.h"
#include "runtime/text/log_sum_exp.h"

namespace tarn {

void ModelDrafts::TakeArrays(Bump* bump) {
  if (session_ == nullptr) return;
  state_ = TakeArray<uint8_t>(*bump, session_->StateBytes());
  if (sampler_ != nullptr) sampler_state_ = TakeArray<uint8_t>(*bump, sampler_->state_bytes());
}

void ModelDrafts::Reset() {
  if (session_ != nullptr) session_->Reset();
  waiting_count_ = drafted_ = 0;
  std::fill(std::begin(kinds_seen_), std::end(kinds_seen_), DraftRecord{});
  seen_ = {};
  tokens_ = steps_ = 0;
  waited_ = 0;
  pause_ = kFirstPause;
}

void ModelDrafts::Add(int32_t token) {
  if (session_ == nullptr) return;
  if (waiting_count_ == kWaiting) {
    std::memmove(waiting_, waiting_ + 1, (kWaiting - 1) * sizeof(int32_t));
    --waiting_count_;
  }
  waiting_[waiting_count_++] = token;
  ++waited_;
}

void ModelDrafts::Read(const int32_t* tokens, size_t count) {
  if (session_ == nullptr) return;
  for (size_t i = 0; i < count; ++i) {
    if (waiting_count_ == kWaiting) Flush();
    Add(tokens[i]);
  }
}

const float* ModelDrafts::Flush() {
  const Result<const float*> logits = session_->Prefill(waiting_, waiting_count_);
  if (!logits.ok()) return nullptr;
  waiting_count_ = 0;
  return logits.value();
}

int32_t ModelDrafts::Guess(const float* logits, size_t* kind) {
  int32_t token = 0;
  if (sampler_ == nullptr) {
    token = static_cast<int32_t>(std::max_element(logits, logits + vocab_size_) - logits);
  } else if (!sampler_->Guess(logits, &token).ok()) {
    return -1;
  }
  LogSumExp sum;
  if (!Summarize(logits, vocab_size_, &sum).ok()) return -1;
  const double log_probability = static_cast<double>(logits[token]) - static_cast<double>(sum.largest) - sum.log_sum;
  int exponent = 0;  // the token is wrong with at least 2^(exponent - 1) and less than 2^exponent
  std::frexp(std::max(-std::expm1(log_probability), 0x1p-30), &exponent);
  *kind = std::min(static_cast<size_t>(std::max(-exponent, 0)), kKinds - 1);
  return token;
}

float ModelDrafts::Probability(size_t kind) const {
  return kinds_seen_[kind].share(1 - 0.75f * std::ldexp(1.0f, -static_cast<int>(kind)));
}

float ModelDrafts::DraftCost(const DraftCosts& costs) const {
  return costs.step_ns() > 0 && step_ns_ > 0 ? step_ns_ / costs.step_ns() : kUnknownDraftCost;
}

size_t ModelDrafts::Draft(size_t most, const DraftCosts& costs, int32_t* tokens) {
  drafted_ = read_ = 0;
  most = std::min(most, kMostAtOnce);
  if (waiting_count_ == 0 || most == 0) return 0;
  const uint64_t start = MonotonicNs();
  const float* logits = Flush();
  if (logits == nullptr) return 0;
  session_->CopyState(state_.data());
  if (sampler_ != nullptr) sampler_->Save(sampler_state_.data());
  // What a row, and a draft and its row, must gain: as many tokens as their time is worth elsewhere.
  const float rate_wanted = std::max(rate(), 1.0f);
  const float row_gain = rate_wanted * costs.row_cost(), draft_gain = row_gain + rate_wanted * DraftCost(costs);
  const float usual = seen_.share(0.5f);
  size_t guesses = 0;
  float right = 1;  // that all drafts are
  while (logits != nullptr) {
    size_t kind = 0;
    const int32_t token = Guess(logits, &kind);
    if (token < 0) break;
    ++guesses;
    right *= Probability(kind);
    if (right < row_gain) break;
    kinds_[drafted_] = static_cast<uint8_t>(kind);
    tokens[drafted_++] = token;
    if (drafted_ == most || right * usual < draft_gain) break;
    const Result<const float*> next = session_->Prefill(&token, 1);
    logits = next.ok() ? next.value() : nullptr;
    read_ += next.ok();
  }
  if (sampler_ != nullptr) sampler_->Restore(sampler_state_.data());
  if (drafted_ == 0) NoteRun(1, 1 + DraftCost(costs));
  if (guesses > 0) {
    const float ns = static_cast<float>(MonotonicNs() - start) / static_cast<float>(guesses);
    step_ns_ = step_ns_ == 0 ? ns : step_ns_ + (std::min(ns, 2 * step_ns_) - step_ns_) / 8;
  }
  return drafted_;
}

void ModelDrafts::Keep(size_t accepted, const int32_t* drafts, uint64_t ns, const DraftCosts& costs) {
  if (drafted_ == 0) return;
  for (size_t i = 0; i < std::min(accepted + 1, drafted_); ++i) {
    kinds_seen_[kinds_[i]].Add(i < accepted);
    seen_.Add(i < accepted);
  }
  const bool is_timed = ns > 0 && costs.step_ns() > 0;
  const float made = static_cast<float>(drafted_) * DraftCost(costs);
  NoteRun(accepted + 1, is_timed ? static_cast<float>(ns) / costs.step_ns() : costs.Cost(drafted_ + 1) + made);
  if (accepted < read_) Forget();
  drafted_ = 0;
  for (size_t i = read_; i < accepted; ++i) Add(drafts[i]);
}

void ModelDrafts::Forget() {
  if (read_ > 0) session_->SetState(state_.data());
  read_ = drafted_ = 0;
}

void ModelDrafts::NoteRun(size_t tokens, float steps) {
  constexpr float kMemory = 1.0f - 1.0f / 32;
  tokens_ = tokens_ * kMemory + static_cast<float>(tokens);
  steps_ = steps_ * kMemory + steps;
}

void ModelDrafts::WasWorthIt(bool is_worth) {
  waited_ = 0;
  pause_ = is_worth ? kFirstPause : std::min(2 * pause_, kMostPause);
}

}  // namespace tarn
