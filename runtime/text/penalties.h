// What makes tokens less probable that were accepted lately. The equations are in sampler.h.
#ifndef TARN_RUNTIME_TEXT_PENALTIES_H_
#define TARN_RUNTIME_TEXT_PENALTIES_H_

#include <cstdint>

#include "core/span.h"
#include "runtime/text/recent_tokens.h"
#include "runtime/text/sampler_config.h"

namespace tarn {

// logit - by, finite if the logit is: a penalty or a bias takes no token away, and -inf is one that cannot be drawn.
float Lowered(float logit, double by);

// Repetition, frequency and presence penalty. Linear in the window. `counts` [vocab_size] is zero before and after.
void Penalize(const SamplerConfig& config, const RecentTokens& recent, Span<uint32_t> counts, Span<float> logits);

// DRY. Linear in the window: `lengths` [dry_last_n] is working memory. `longest` [vocab_size] is zero before and after; `breakers`
// ascend.
void PenalizeRepeats(const SamplerConfig& config, const RecentTokens& recent, Span<const int32_t> breakers, Span<uint32_t> lengths,
                     Span<uint32_t> longest, Span<float> logits);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_PENALTIES_H_
