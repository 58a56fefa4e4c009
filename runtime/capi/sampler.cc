// C API: sampler. Translation only; the work is in runtime/text.
#include "runtime/text/sampler.h"

#include "runtime/capi/handles.h"
#include "tarn/tarn.h"

namespace tarn {
namespace {

// A tarn_sampler is a Sampler by another name.
Sampler* Of(tarn_sampler* sampler) { return reinterpret_cast<Sampler*>(sampler); }

Status CreateSampler(uint32_t vocab_size, const tarn_sampler_config* user, tarn_sampler** sampler) {
  if (sampler == nullptr) return NullArgument("sampler");
  tarn_sampler_config config = TARN_SAMPLER_CONFIG_INIT;
  if (user != nullptr) TARN_RETURN_IF_ERROR(ReadStruct(user, &config));
  TARN_RETURN_IF_ERROR(CheckAllocator(config.allocator));
  const SamplerConfig chain{config.temperature,    config.top_k,         config.top_p, config.min_p,
                            config.repeat_penalty, config.repeat_last_n, config.seed};
  TARN_ASSIGN_OR_RETURN(Sampler * created, Sampler::Create(vocab_size, chain, AllocatorFrom(config.allocator)));
  *sampler = reinterpret_cast<tarn_sampler*>(created);
  return Ok();
}

Status SampleToken(tarn_sampler* sampler, const float* logits, int32_t* token) {
  if (sampler == nullptr) return NullArgument("sampler");
  if (logits == nullptr) return NullArgument("logits");
  if (token == nullptr) return NullArgument("token");
  return Of(sampler)->Sample(logits, token);
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

void tarn_sampler_reset(tarn_sampler* sampler) {
  if (sampler != nullptr) tarn::Of(sampler)->Reset();
}
