// What a sampler is asked to do, and the ranges in which that makes sense.
#ifndef TARN_RUNTIME_TEXT_SAMPLER_CONFIG_H_
#define TARN_RUNTIME_TEXT_SAMPLER_CONFIG_H_

#include <cstddef>
#include <cstdint>

#include "core/span.h"
#include "core/status.h"
#include "runtime/text/logit_mask.h"

namespace tarn {

// As tarn_logit_bias.
struct TokenBias {
  int32_t token;
  float bias;
};

// Fields as in tarn_sampler_config, but for zero, which is no default here. Those with an initialiser are off as they stand.
struct SamplerConfig {
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  float repeat_penalty;
  uint32_t repeat_last_n;
  uint64_t seed;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  uint32_t dry_allowed_length = 2;
  uint32_t dry_last_n = 1024;
  float top_n_sigma = 0;
  float typical_p = 1;
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  float dynatemp_range = 0;
  float dynatemp_exponent = 1;
  uint32_t mirostat = 0;
  float mirostat_tau = 5;
  float mirostat_eta = 0.1f;
  // Copied at creation.
  Span<const TokenBias> logit_bias{};
  Span<const int32_t> banned_tokens{};
  Span<const int32_t> dry_breakers{};
  void (*edit_logits)(void* context, float* logits, size_t vocab_size) = nullptr;
  void* edit_context = nullptr;
  LogitMask* mask = nullptr;

  // Which stages are on.
  bool Greedy() const { return temperature == 0; }
  bool Penalizes() const { return repeat_last_n > 0 && (repeat_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0); }
  bool UsesDry() const { return dry_multiplier > 0 && dry_last_n > 0; }
  bool UsesMirostat() const { return mirostat != 0; }
};

// Errors: TARN_INVALID_ARGUMENT (names the field, its value and its range).
Status Validate(uint32_t vocab_size, const SamplerConfig& config);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_SAMPLER_CONFIG_H_
