#include "runtime/text/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "core/bump.h"
#include "runtime/text/visit_above.h"

namespace tarn {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

Status NanLogit(size_t id) { return Error(TARN_INVALID_ARGUMENT, "the logit of token %zu is NaN", id); }

Status NothingToDraw() { return Error(TARN_INVALID_ARGUMENT, "every logit is -inf: no token can be drawn"); }

// log of a token's probability relative to the most probable one. The largest logit may be +inf.
double RelativeLog(float logit, float max_logit) {
  return logit == max_logit ? 0.0 : static_cast<double>(logit) - static_cast<double>(max_logit);
}

Status OutOfRange(const char* field, double value, const char* range) {
  return Error(TARN_INVALID_ARGUMENT, "%s is %g, must be %s", field, value, range);
}

Status Validate(uint32_t vocab_size, const SamplerConfig& config) {
  if (vocab_size == 0 || vocab_size > static_cast<uint32_t>(INT32_MAX)) {
    return Error(TARN_INVALID_ARGUMENT, "vocab_size is %u, must be in [1, %d]", vocab_size, INT32_MAX);
  }
  // Written so that NaN fails.
  if (!(config.temperature >= 0 && std::isfinite(config.temperature))) {
    return OutOfRange("temperature", config.temperature, "finite and at least 0");
  }
  if (!(config.top_p > 0 && config.top_p <= 1)) return OutOfRange("top_p", config.top_p, "in (0, 1]");
  if (!(config.min_p >= 0 && config.min_p <= 1)) return OutOfRange("min_p", config.min_p, "in [0, 1]");
  if (!(config.repeat_penalty > 0 && std::isfinite(config.repeat_penalty))) {
    return OutOfRange("repeat_penalty", config.repeat_penalty, "finite and above 0");
  }
  return Ok();
}

}  // namespace

Sampler::Sampler(uint32_t vocab_size, const SamplerConfig& config)
    : config_(config),
      vocab_size_(vocab_size),
      top_k_(config.top_k == 0 ? vocab_size : std::min(config.top_k, vocab_size)),
      random_(config.seed) {}

Result<Sampler*> Sampler::Create(uint32_t vocab_size, const SamplerConfig& config, const Allocator& allocator) {
  TARN_RETURN_IF_ERROR(Validate(vocab_size, config));
  Bump measure;
  measure.Take(sizeof(Sampler));
  Sampler(vocab_size, config).TakeArrays(&measure);
  TARN_ASSIGN_OR_RETURN(Block block, Block::Allocate(allocator, measure.used(), "sampler"));
  Bump bump(block.bytes());
  Sampler* sampler = new (bump.Take(sizeof(Sampler))) Sampler(vocab_size, config);
  sampler->TakeArrays(&bump);
  sampler->block_ = std::move(block);
  return sampler;
}

void Sampler::Destroy(Sampler* sampler) {
  if (sampler == nullptr) return;
  const Block block = std::move(sampler->block_);  // outlives the object that lies in it
  sampler->~Sampler();
}

void Sampler::TakeArrays(Bump* bump) {
  if (config_.repeat_penalty != 1 && config_.repeat_last_n > 0) {
    penalized_ = TakeArray<float>(*bump, vocab_size_);
    window_ = TakeArray<int32_t>(*bump, config_.repeat_last_n);
  }
  if (config_.temperature > 0) {
    // Twice k: Collect() makes room by halving, which costs O(1) per candidate.
    const uint64_t most = std::min<uint64_t>(2 * uint64_t{top_k_}, vocab_size_);
    candidates_ = TakeArray<Candidate>(*bump, most);
    weights_ = TakeArray<double>(*bump, most);
  }
}

Status Sampler::Sample(const float* logits, int32_t* token) {
  const float* penalized = Penalize(logits);
  if (config_.temperature == 0) {
    TARN_RETURN_IF_ERROR(Greedy(penalized, token));
  } else {
    TARN_RETURN_IF_ERROR(Collect(penalized));
    KeepTopP();
    KeepMinP();
    *token = Draw();
  }
  Accept(*token);
  return Ok();
}

void Sampler::Accept(int32_t token) {
  if (window_.empty() || token < 0 || static_cast<uint32_t>(token) >= vocab_size_) return;
  window_[window_next_] = token;
  window_next_ = window_next_ + 1 == window_.size() ? 0 : window_next_ + 1;
  window_used_ = std::min(window_used_ + 1, window_.size());
}

void Sampler::Reset() {
  random_ = Pcg32(config_.seed);
  window_used_ = 0;
  window_next_ = 0;
}

const float* Sampler::Penalize(const float* logits) {
  if (window_used_ == 0) return logits;
  std::memcpy(penalized_.data(), logits, vocab_size_ * sizeof(float));
  for (const int32_t id : window_.subspan(0, window_used_)) {
    // From the caller's logit, so that a token that stands in the window twice is penalised once.
    const float logit = logits[id];
    penalized_[id] = logit > 0 ? logit / config_.repeat_penalty : logit * config_.repeat_penalty;
    // A penalty makes a token less probable, or more, but takes none away: -inf is a token that cannot be drawn.
    if (std::isinf(penalized_[id]) && !std::isinf(logit)) penalized_[id] = std::copysign(kLargest, logit);
  }
  return penalized_.data();
}

Status Sampler::Greedy(const float* logits, int32_t* token) const {
  constexpr size_t kNone = SIZE_MAX;
  float best = kMinusInfinity;
  size_t best_id = kNone;
  size_t nan_id = kNone;
  VisitAbove(logits, vocab_size_, &best, [&](size_t id) {
    if (std::isnan(logits[id])) {
      nan_id = id;
      return false;
    }
    best = logits[id];
    best_id = id;
    return true;
  });
  if (nan_id != kNone) return NanLogit(nan_id);
  if (best_id == kNone) return NothingToDraw();
  *token = static_cast<int32_t>(best_id);
  return Ok();
}

// The top_k_ largest logits into candidates_: by Candidate's order if k cuts anything, else by id.
Status Sampler::Collect(const float* logits) {
  constexpr size_t kNone = SIZE_MAX;
  const bool cuts = top_k_ < vocab_size_;
  float limit = kMinusInfinity;  // of the logits seen so far, top_k_ are at least this; a later equal one has a higher id
  size_t nan_id = kNone;
  size_t count = 0;
  const auto halve = [&] {
    std::nth_element(candidates_.begin(), candidates_.begin() + (top_k_ - 1), candidates_.begin() + count);
    limit = candidates_[top_k_ - 1].logit;
    count = top_k_;
  };
  VisitAbove(logits, vocab_size_, &limit, [&](size_t id) {
    if (std::isnan(logits[id])) {
      nan_id = id;
      return false;
    }
    candidates_[count++] = {logits[id], static_cast<int32_t>(id)};
    if (cuts && count == candidates_.size()) halve();
    return true;
  });
  if (nan_id != kNone) return NanLogit(nan_id);
  if (count == 0) return NothingToDraw();
  if (cuts) {
    if (count > top_k_) halve();
    std::sort(candidates_.begin(), candidates_.begin() + count);
    max_logit_ = candidates_[0].logit;
  } else {
    max_logit_ = std::min_element(candidates_.begin(), candidates_.begin() + count)->logit;
  }
  kept_ = count;
  return Ok();
}

void Sampler::KeepTopP() {
  if (config_.top_p >= 1) return;
  double total = 0;
  for (size_t i = 0; i < kept_; ++i) total += std::exp(RelativeLog(candidates_[i].logit, max_logit_));
  const double wanted = config_.top_p * total;
  // Few tokens hold most of the probability: order as many as are looked at, twice as many each time that is not enough.
  size_t ordered = top_k_ < vocab_size_ ? kept_ : 0;
  size_t count = 0;
  double sum = 0;
  while (count < kept_ && sum < wanted) {
    if (count == ordered) {
      ordered = std::min(kept_, std::max<size_t>(64, 2 * ordered));
      Candidate* const begin = candidates_.begin();
      std::nth_element(begin + count, begin + (ordered - 1), begin + kept_);
      std::sort(begin + count, begin + ordered);
    }
    sum += std::exp(RelativeLog(candidates_[count++].logit, max_logit_));
  }
  kept_ = count;
}

void Sampler::KeepMinP() {
  if (config_.min_p <= 0) return;
  const double least = std::log(static_cast<double>(config_.min_p));
  Candidate* const end = std::remove_if(candidates_.begin(), candidates_.begin() + kept_, [&](const Candidate& candidate) {
    return RelativeLog(candidate.logit, max_logit_) < least;
  });
  kept_ = static_cast<size_t>(end - candidates_.begin());
}

int32_t Sampler::Draw() {
  double total = 0;
  for (size_t i = 0; i < kept_; ++i) {
    weights_[i] = std::exp(RelativeLog(candidates_[i].logit, max_logit_) / config_.temperature);
    total += weights_[i];
  }
  const double target = random_.NextDouble() * total;  // < total: the largest draw is 1 - 2^-53
  double sum = weights_[0];
  size_t i = 0;
  while (sum <= target && i + 1 < kept_) sum += weights_[++i];
  return candidates_[i].id;
}

}  // namespace tarn
