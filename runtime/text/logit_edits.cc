#include "runtime/text/logit_edits.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/bump.h"
#include "runtime/text/penalties.h"

namespace tarn {

void LogitEdits::TakeArrays(Bump* bump) {
  const bool looks_back = config_.Penalizes() || config_.UsesDry();
  if (looks_back || AlwaysEdits()) edited_ = TakeArray<float>(*bump, vocab_size_);
  if (looks_back) {
    per_token_ = TakeArray<uint32_t>(*bump, vocab_size_);
    recent_.Use(TakeArray<int32_t>(
        *bump, std::max(config_.Penalizes() ? config_.repeat_last_n : 0, config_.UsesDry() ? config_.dry_last_n : 0)));
  }
  if (config_.UsesDry()) {
    lengths_ = TakeArray<uint32_t>(*bump, config_.dry_last_n);
    if (!config_.dry_breakers.empty()) breakers_ = TakeArray<int32_t>(*bump, config_.dry_breakers.size());
  }
  if (!config_.logit_bias.empty()) biases_ = TakeArray<TokenBias>(*bump, config_.logit_bias.size());
  if (!config_.banned_tokens.empty()) banned_ = TakeArray<int32_t>(*bump, config_.banned_tokens.size());
}

void LogitEdits::CopyLists() {
  std::copy_n(config_.logit_bias.begin(), biases_.size(), biases_.begin());
  std::copy_n(config_.banned_tokens.begin(), banned_.size(), banned_.begin());
  std::copy_n(config_.dry_breakers.begin(), breakers_.size(), breakers_.begin());
  std::sort(breakers_.begin(), breakers_.end());
}

Result<const float*> LogitEdits::Apply(const float* logits, LogitMask* mask) {
  if (recent_.size() == 0 && !AlwaysEdits()) return logits;
  std::memcpy(edited_.data(), logits, edited_.size() * sizeof(float));
  for (const TokenBias& bias : biases_) edited_[bias.token] = Lowered(edited_[bias.token], -static_cast<double>(bias.bias));
  for (const int32_t token : banned_) edited_[token] = -std::numeric_limits<float>::infinity();
  if (config_.edit_logits != nullptr) config_.edit_logits(config_.edit_context, edited_.data(), edited_.size());
  if (mask != nullptr) TARN_RETURN_IF_ERROR(mask->Apply(edited_));
  if (config_.Penalizes()) Penalize(config_, recent_, per_token_, edited_);
  if (config_.UsesDry()) PenalizeRepeats(config_, recent_, breakers_, lengths_, per_token_, edited_);
  return static_cast<const float*>(edited_.data());
}

}  // namespace tarn
