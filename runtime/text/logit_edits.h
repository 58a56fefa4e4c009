// The stages of a sampler that change logits and drop none: logit bias, banned tokens, the caller's function, penalties, DRY.
// sampler.h has their equations and their order.
#ifndef TARN_RUNTIME_TEXT_LOGIT_EDITS_H_
#define TARN_RUNTIME_TEXT_LOGIT_EDITS_H_

#include <cstddef>
#include <cstdint>

#include "core/result.h"
#include "core/span.h"
#include "runtime/text/recent_tokens.h"
#include "runtime/text/sampler_config.h"

namespace tarn {

class Bump;

class LogitEdits {
 public:
  // `config` is that of the sampler, which outlives this.
  LogitEdits(uint32_t vocab_size, const SamplerConfig& config) : config_(config), vocab_size_(vocab_size) {}

  // Lays the arrays out; only counts when `bump` has no block.
  void TakeArrays(Bump* bump);
  // Copies the caller's arrays into those.
  void CopyLists();

  // The edited logits [vocab_size], borrowed until the next call; `logits` itself where nothing changes. `mask`: the config's, or
  // nullptr. Errors: those of the mask.
  Result<const float*> Apply(const float* logits, LogitMask* mask);

  // A token of the vocabulary.
  void Accept(int32_t token) { recent_.Add(token); }
  void Reset() { recent_.Clear(); }
  const RecentTokens& recent() const { return recent_; }
  RecentTokens& recent() { return recent_; }

 private:
  bool AlwaysEdits() const {
    return !config_.logit_bias.empty() || !config_.banned_tokens.empty() || config_.edit_logits != nullptr ||
           config_.mask != nullptr;
  }

  const SamplerConfig& config_;
  uint32_t vocab_size_;
  RecentTokens recent_;
  Span<float> edited_;        // [vocab_size]; empty where nothing is edited
  Span<uint32_t> per_token_;  // [vocab_size], zero between the stages; empty without penalties and DRY
  Span<uint32_t> lengths_;    // [dry_last_n]; empty without DRY
  // Copies of the caller's lists.
  Span<TokenBias> biases_;
  Span<int32_t> banned_;
  Span<int32_t> breakers_;  // ascending
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_LOGIT_EDITS_H_
