// From logits to a token: penalties, top-k, top-p, min-p, temperature, draw.
//
//   l'_i = l_i / r or l_i * r      for a token i of the window (l_i > 0, l_i <= 0), r = repeat_penalty, once per distinct token
//   keep the k largest l'          equal ones: the lower ids
//   keep the fewest i, largest first, with sum p_i >= top_p          p = softmax(l') over what is left
//   keep i with p_i >= min_p * max p
//   draw from softmax(l' / temperature) over what is left
//
// top_p and min_p therefore look at probabilities before temperature. Probabilities are computed in double; the order of every
// sum is by descending logit, then ascending id (ascending id alone where nothing has to be ordered), never one that the standard
// library is free to choose. A logit of -inf is a token that cannot be drawn.
#ifndef TARN_RUNTIME_TEXT_SAMPLER_H_
#define TARN_RUNTIME_TEXT_SAMPLER_H_

#include <cstddef>
#include <cstdint>

#include "core/allocator.h"
#include "core/result.h"
#include "core/span.h"
#include "runtime/text/pcg32.h"

namespace tarn {

class Bump;

// Fields as in tarn_sampler_config.
struct SamplerConfig {
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  float repeat_penalty;
  uint32_t repeat_last_n;
  uint64_t seed;
};

class Sampler {
 public:
  // One allocation, which holds the sampler as well; none later.
  // Errors: TARN_INVALID_ARGUMENT (names the field and its range), TARN_OUT_OF_MEMORY.
  static Result<Sampler*> Create(uint32_t vocab_size, const SamplerConfig& config, const Allocator& allocator);
  // Accepts nullptr.
  static void Destroy(Sampler* sampler);

  // Picks a token from `logits` [vocab_size] and accepts it.
  // Errors: TARN_INVALID_ARGUMENT (a logit is NaN, or all are -inf); the sampler is then unchanged.
  Status Sample(const float* logits, int32_t* token);

  // Puts a token into the penalty window. One that is out of range is ignored.
  void Accept(int32_t token);

  // Back to the seed and an empty window.
  void Reset();

 private:
  struct Candidate {
    float logit;
    int32_t id;
    bool operator<(const Candidate& other) const {  // "comes first"
      return logit > other.logit || (logit == other.logit && id < other.id);
    }
  };

  Sampler(uint32_t vocab_size, const SamplerConfig& config);

  // Lays the arrays out; only counts when `bump` has no block.
  void TakeArrays(Bump* bump);

  const float* Penalize(const float* logits);
  Status Greedy(const float* logits, int32_t* token) const;
  Status Collect(const float* logits);
  void KeepTopP();
  void KeepMinP();
  int32_t Draw();

  SamplerConfig config_;
  uint32_t vocab_size_;
  uint32_t top_k_;  // config_.top_k, with 0 and what exceeds the vocabulary as vocab_size_
  Pcg32 random_;
  Block block_;

  Span<float> penalized_;       // [vocab_size]; empty without a penalty
  Span<int32_t> window_;        // [repeat_last_n] ring; empty without a penalty
  size_t window_used_ = 0;      // entries of the ring that hold a token
  size_t window_next_ = 0;      // where the next one goes
  Span<Candidate> candidates_;  // room for all that Collect() keeps at once; empty if greedy
  Span<double> weights_;        // [candidates_.size()], of the kept ones; empty if greedy
  size_t kept_ = 0;             // candidates_[0, kept_) are still in the race
  float max_logit_ = 0;         // the largest of them
};

}  // namespace tarn

#endif  // TARN_RUNTIME_TEXT_SAMPLER_H_
