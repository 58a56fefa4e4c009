// The end of a sampler's chain: temperature, Mirostat, draw. The equations are in sampler.h.
#ifndef TARN_RUNTIME_TEXT_DRAW_H_
#define TARN_RUNTIME_TEXT_DRAW_H_

#include "core/span.h"
#include "runtime/text/candidates.h"
#include "runtime/text/pcg32.h"
#include "runtime/text/sampler_config.h"

namespace tarn {

// The temperature that the entropy of the candidates asks for; without a range that of the config.
double Temperature(const SamplerConfig& config, const Candidates& candidates);

// What Mirostat 2 carries from token to token.
struct MirostatState {
  double mu;  // the most surprise, in bits, that a token may have
};
MirostatState StartOf(const SamplerConfig& config);

// Draws from softmax(logits / temperature). `weights` is working memory, as large as the room of the candidates.
int32_t Draw(double temperature, Pcg32* random, Span<double> weights, const Candidates& candidates);

// The same of tokens that are not too surprising, and what was learned from that.
int32_t DrawByMirostat(const SamplerConfig& config, double temperature, MirostatState* state, Pcg32* random, Span<double> weights,
                       Candidates* candidates);

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_DRAW_H_
