// C API: sampler. Translation only; the work is in runtime/text.
#include "runtime/text/sampler.h"

#include <cstddef>

#include "runtime/capi/handles.h"
#include "runtime/grammar/grammar.h"
#include "runtime/text/log_probabilities.h"
#include "tarn/tarn.h"

namespace tarn {
namespace {

// A tarn_sampler is a Sampler by another name.
Sampler* Of(tarn_sampler* sampler) { return reinterpret_cast<Sampler*>(sampler); }

static_assert(sizeof(TokenBias) == sizeof(tarn_logit_bias) && offsetof(TokenBias, token) == offsetof(tarn_logit_bias, token) &&
                  offsetof(TokenBias, bias) == offsetof(tarn_logit_bias, bias),
              "one layout");
static_assert(sizeof(LogProbability) == sizeof(tarn_log_probability) &&
                  offsetof(LogProbability, token) == offsetof(tarn_log_probability, token) &&
                  offsetof(LogProbability, log_probability) == offsetof(tarn_log_probability, log_probability),
              "one layout");

Status CheckLists(const tarn_sampler_config& config) {
  if (config.logit_bias == nullptr && config.logit_bias_count > 0) return NullArgument("logit_bias");
  if (config.banned_tokens == nullptr && config.banned_token_count > 0) return NullArgument("banned_tokens");
  if (config.dry_breakers == nullptr && config.dry_breaker_count > 0) return NullArgument("dry_breakers");
  return Ok();
}

SamplerConfig ChainOf(const tarn_sampler_config& config) {
  SamplerConfig chain{config.temperature,    config.top_k,         config.top_p, config.min_p,
                      config.repeat_penalty, config.repeat_last_n, config.seed};
  chain.frequency_penalty = config.frequency_penalty;
  chain.presence_penalty = config.presence_penalty;
  chain.dry_multiplier = config.dry_multiplier;
  chain.dry_base = OrDefault(config.dry_base, chain.dry_base);
  chain.dry_allowed_length = OrDefault(config.dry_allowed_length, chain.dry_allowed_length);
  chain.dry_last_n = OrDefault(config.dry_last_n, chain.dry_last_n);
  chain.top_n_sigma = config.top_n_sigma;
  chain.typical_p = OrDefault(config.typical_p, chain.typical_p);
  chain.xtc_probability = config.xtc_probability;
  chain.xtc_threshold = OrDefault(config.xtc_threshold, chain.xtc_threshold);
  chain.dynatemp_range = config.dynatemp_range;
  chain.dynatemp_exponent = OrDefault(config.dynatemp_exponent, chain.dynatemp_exponent);
  chain.mirostat = config.mirostat;
  chain.mirostat_tau = OrDefault(config.mirostat_tau, chain.mirostat_tau);
  chain.mirostat_eta = OrDefault(config.mirostat_eta, chain.mirostat_eta);
  chain.logit_bias = {reinterpret_cast<const TokenBias*>(config.logit_bias), config.logit_bias_count};
  chain.banned_tokens = {config.banned_tokens, config.banned_token_count};
  chain.dry_breakers = {config.dry_breakers, config.dry_breaker_count};
  chain.edit_logits = config.edit_logits;
  chain.edit_context = config.edit_context;
  chain.mask = reinterpret_cast<Grammar*>(config.grammar);
  return chain;
}

Status CreateSampler(uint32_t vocab_size, const tarn_sampler_config* user, tarn_sampler** sampler) {
  if (sampler == nullptr) return NullArgument("sampler");
  tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  TARN_RETURN_IF_ERROR(CheckLists(config));
  TARN_ASSIGN_OR_RETURN(Sampler * created, Sampler::Create(vocab_size, ChainOf(config), AllocatorFrom(config.allocator)));
  *sampler = reinterpret_cast<tarn_sampler*>(created);
  return Ok();
}

Status SampleToken(tarn_sampler* sampler, const float* logits, int32_t* token) {
  if (sampler == nullptr) return NullArgument("sampler");
  if (logits == nullptr) return NullArgument("logits");
  if (token == nullptr) return NullArgument("token");
  return Of(sampler)->Sample(logits, token);
}

Status LogProbabilitiesOf(Span<const float> logits, int32_t token, double* log_probability, Span<LogProbability> best,
                          size_t* count) {
  if (logits.data() == nullptr) return NullArgument("logits");
  if (logits.empty()) return Error(TARN_INVALID_ARGUMENT, "vocab_size is 0, must be at least 1");
  if (best.data() == nullptr && !best.empty()) return NullArgument("best");
  size_t none = 0;
  if (count == nullptr && !best.empty()) return NullArgument("count");
  if (log_probability != nullptr && (token < 0 || static_cast<uint32_t>(token) >= logits.size())) {
    return Error(TARN_INVALID_ARGUMENT, "token is %d, must be in [0, %zu]", token, logits.size() - 1);
  }
  return LogProbabilities(logits, token, log_probability, best, count == nullptr ? &none : count);
}

}  // namespace
}  // namespace tarn

tarn_status tarn_sampler_create(uint32_t vocab_size, const tarn_sampler_config* config, tarn_sampler** sampler, tarn_error* error) {
  return tarn::Report(tarn::CreateSampler(vocab_size, config, sampler), error);
}

void tarn_sampler_destroy(tarn_sampler* sampler) { tarn::Sampler::Destroy(tarn::Of(sampler)); }

tarn_status tarn_sampler_sample(tarn_sampler* sampler, const float* logits, int32_t* token, tarn_error* error) {
  return tarn::Report(tarn::SampleToken(sampler, logits, token), error);
}

void tarn_sampler_accept(tarn_sampler* sampler, int32_t token) {
  if (sampler != nullptr) tarn::Of(sampler)->Accept(token);
}

void tarn_sampler_set_seed(tarn_sampler* sampler, uint64_t seed) {
  if (sampler != nullptr) tarn::Of(sampler)->SetSeed(seed);
}

void tarn_sampler_reset(tarn_sampler* sampler) {
  if (sampler != nullptr) tarn::Of(sampler)->Reset();
}

tarn_status tarn_log_probabilities(const float* logits, uint32_t vocab_size, int32_t token, double* log_probability,
                                   tarn_log_probability* best, size_t capacity, size_t* count, tarn_error* error) {
  return tarn::Report(tarn::LogProbabilitiesOf({logits, vocab_size}, token, log_probability,
                                               {reinterpret_cast<tarn::LogProbability*>(best), capacity}, count),
                      error);
}
