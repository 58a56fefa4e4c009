// From logits to a token: a chain of stages in the order in which the field has them. A stage that is off costs nothing.
//
// What changes logits l [vocab_size], in a copy (logit_edits.h, penalties.h):
//   logit bias     l_i += b_i                            for each entry (i, b_i): a token that is listed twice gets both
//   banned tokens  l_i = -inf
//   edit_logits    the caller's function
//   repetition     l_i = l_i / r or l_i * r              l_i > 0, l_i <= 0; r = repeat_penalty       arXiv:1909.05858
//   frequency      l_i -= f c_i                          c_i: how often i is in the window           OpenAI's API
//   presence       l_i -= s                              once                                        OpenAI's API
//     These three are for tokens among the last repeat_last_n accepted ones.
//   DRY            l_i -= m b^(n_i - a)  where n_i >= a  p-e-w, github.com/oobabooga/textgen/pull/5677
//     n_i: the length of the longest end of the last dry_last_n accepted tokens that stands in them earlier as well, followed by i;
//     m = dry_multiplier, b = dry_base, a = dry_allowed_length. No such end has a breaker in it; breakers are not penalised.
//   Bias and penalties leave a finite logit finite.
//
// What drops tokens (truncation.h); p = softmax(l) over what is left, and q the share that is asked for:
//   top-n-sigma    keep l_i >= max l - n sigma           sigma: standard deviation of all l > -inf   arXiv:2411.07641
//   top-k          keep the k largest l                  equal ones: the lower ids
//   typical        keep the fewest i with sum p_i >= q   by ascending |-log p_i - H|, H: entropy     arXiv:2202.00666
//   top-p          keep the fewest i with sum p_i >= q   by descending p_i                           arXiv:1904.09751
//   min-p          keep p_i >= q max p                                                               arXiv:2407.01082
//   XTC            at times drop all p_i >= xtc_threshold but the least of them                      p-e-w, textgen/pull/6335
//     xtc_probability says how often. Of equal ones the highest id is the least.
//
// What draws (draw.h):
//   temperature    p = softmax(l / T). T = 0 is greedy: the largest l after the edits, the lower id of equal ones
//   dynamic        T = low + (temperature + range - low) (H / log n)^exponent                        kalomaze, koboldcpp/pull/600
//     low = max(0, temperature - range); H: entropy of softmax(l) over the n tokens that are left
//   Mirostat 2     keep -log2 p_i <= mu, or the largest alone; after the draw mu -= eta (-log2 p_i - tau)  arXiv:2007.14966
//     mu = 2 tau at first. The second p is that of the tokens that were kept, as in llama.cpp. With Mirostat, top-n-sigma to XTC
//     are off.
//   draw           one number of PCG32; XTC takes one before, for every token
//
// Truncation therefore looks at probabilities before temperature. Probabilities are computed in double; the order of every sum is
// by descending logit, then ascending id (ascending id alone where nothing has to be ordered, by distance for typical), never one
// that the standard library is free to choose. A logit of -inf is a token that cannot be drawn.
#ifndef TARN_RUNTIME_TEXT_SAMPLER_H_
#define TARN_RUNTIME_TEXT_SAMPLER_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/text/candidates.h"
#include "runtime/text/draw.h"
#include "runtime/text/logit_edits.h"
#include "runtime/text/pcg32.h"
#include "runtime/text/sampler_config.h"

namespace tarn {

class Bump;

class Sampler {
 public:
  // One allocation, which holds the sampler and copies of the config's lists as well; none later.
  // Errors: TARN_INVALID_ARGUMENT (names the field and its range), TARN_OUT_OF_MEMORY.
  static Result<Sampler*> Create(uint32_t vocab_size, const SamplerConfig& config, const Allocator& allocator);
  // Accepts nullptr.
  static void Destroy(Sampler* sampler);

  // Picks a token from `logits` [vocab_size] and accepts it.
  // Errors: TARN_INVALID_ARGUMENT (a logit is NaN, or all are -inf); the sampler is then unchanged.
  Status Sample(const float* logits, int32_t* token);

  // What Sample would pick if there were no mask; whoever guesses saves the state before and restores it. Errors: as Sample.
  Status Guess(const float* logits, int32_t* token);

  // Puts a token into the window of the penalties. One that is out of range is ignored.
  void Accept(int32_t token);

  // Back to the seed and an empty window.
  void Reset();

  // sampler_state.cc, which a program without checkpoints does not link. Draws go on as those of a new sampler with `seed`.
  void SetSeed(uint64_t seed);
  // What a sampler carries from token to token, but for the window of the penalties.
  struct Point {
    Pcg32 random;
    MirostatState mirostat;
  };
  Point point() const { return {random_, mirostat_}; }
  void SetPoint(const Point& point);
  // The same with the window: `state` has state_bytes(), at any alignment. Restore() takes what Save() wrote for a sampler of the
  // same config.
  size_t state_bytes() const;
  void Save(uint8_t* state) const;
  void Restore(const uint8_t* state);
  uint32_t vocab_size() const { return vocab_size_; }
  // nullptr: none.
  const LogitMask* mask() const { return config_.mask; }
  // Its mask lets nothing follow.
  bool is_complete() const { return config_.mask != nullptr && config_.mask->is_complete(); }
  // The window of the penalties.
  const RecentTokens& recent() const { return edits_.recent(); }

 private:
  Sampler(uint32_t vocab_size, const SamplerConfig& config);
  Sampler(const Sampler&) = delete;  // edits_ refers to config_

  // Lays the arrays out; only counts when `bump` has no block.
  void TakeArrays(Bump* bump);

  Status Pick(const float* edited, int32_t* token);
  Status Truncate(Span<const float> logits);
  int32_t DrawToken();

  SamplerConfig config_;
  uint32_t vocab_size_;
  uint32_t top_k_;  // with 0 and what exceeds the vocabulary as vocab_size_
  Pcg32 random_;
  MirostatState mirostat_;
  LogitEdits edits_;
  Candidates candidates_;  // without room if greedy
  Span<double> weights_;   // of the candidates; empty if greedy
  Block block_;
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_SAMPLER_H_
