#include "runtime/generation/model_drafts.h"

#include <algorithm>
#include <cstring>

#include "runtime/platform/clock.h"

namespace tarn {

void ModelDrafts::TakeArrays(Bump* bump) {
  if (session_ == nullptr) return;
  state_ = TakeArray<uint8_t>(*bump, session_->StateBytes());
  if (sampler_ != nullptr) sampler_state_ = TakeArray<uint8_t>(*bump, sampler_->state_bytes());
}

void ModelDrafts::Reset() {
  if (session_ != nullptr) session_->Reset();
  waiting_count_ = drafted_ = 0;
  right_ = all_ = 0;
  waited_ = pause_ = kFirstPause;
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

int32_t ModelDrafts::Guess(const float* logits) {
  int32_t token = 0;
  if (sampler_ != nullptr) {
    if (!sampler_->Guess(logits, &token).ok()) return -1;
    return token;
  }
  return static_cast<int32_t>(std::max_element(logits, logits + vocab_size_) - logits);
}

size_t ModelDrafts::Draft(size_t most, int32_t* tokens) {
  drafted_ = read_ = 0;
  if (waiting_count_ == 0 || most == 0) return 0;
  const uint64_t start = MonotonicNs();
  const float* logits = Flush();
  if (logits == nullptr) return 0;
  session_->CopyState(state_.data());
  if (sampler_ != nullptr) sampler_->Save(sampler_state_.data());
  while (logits != nullptr && drafted_ < most) {
    const int32_t token = Guess(logits);
    if (token < 0) break;
    tokens[drafted_++] = token;
    if (drafted_ == most) break;
    const Result<const float*> next = session_->Prefill(&token, 1);
    logits = next.ok() ? next.value() : nullptr;
    read_ += next.ok();
  }
  if (sampler_ != nullptr) sampler_->Restore(sampler_state_.data());
  if (drafted_ > 0) {
    const float ns = static_cast<float>(MonotonicNs() - start) / static_cast<float>(drafted_);
    step_ns_ = step_ns_ == 0 ? ns : step_ns_ + (std::min(ns, 2 * step_ns_) - step_ns_) / 8;
  }
  return drafted_;
}

void ModelDrafts::Keep(size_t accepted, const int32_t* drafts) {
  if (drafted_ == 0) return;
  constexpr float kMemory = 1.0f - 1.0f / 32;
  const size_t judged = std::min(accepted + 1, drafted_);
  for (size_t i = 0; i < judged; ++i) {
    right_ = right_ * kMemory + (i < accepted ? 1.0f : 0.0f);
    all_ = all_ * kMemory + 1.0f;
  }
  if (accepted < read_) {
    session_->SetState(state_.data());
    read_ = 0;
  }
  drafted_ = 0;
  for (size_t i = read_; i < accepted; ++i) Add(drafts[i]);
}

void ModelDrafts::WasWorthIt(bool is_worth) {
  waited_ = 0;
  pause_ = is_worth ? kFirstPause : std::min(2 * pause_, kMostPause);
}

}  // namespace tarn
