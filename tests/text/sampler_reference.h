// The chain of sampler.h once more, written plainly: vectors, doubles, full sorts, quadratic searches. It shares no code with the
// sampler but the generator of draws.
#ifndef TARN_TESTS_TEXT_SAMPLER_REFERENCE_H_
#define TARN_TESTS_TEXT_SAMPLER_REFERENCE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/text/pcg32.h"
#include "runtime/text/sampler_config.h"

namespace tarn {

struct Choice {
  int32_t id;
  double logit;
  double probability;  // of being drawn
};

class SamplerReference {
 public:
  explicit SamplerReference(const SamplerConfig& config)
      : config_(config), random_(config.seed), mu_(2 * double{config.mirostat_tau}) {}

  void Accept(int32_t token) { accepted_.push_back(token); }
  // What the next token is drawn from, in the order in which the draw walks; with XTC as it fires or not.
  std::vector<Choice> Distribution(const std::vector<float>& logits, bool xtc_fires) const;
  // Draws a token and accepts it.
  int32_t Sample(const std::vector<float>& logits);
  double mu() const { return mu_; }

 private:
  std::vector<float> Edited(const std::vector<float>& logits) const;
  void PenalizeRecent(std::vector<float>* logits) const;
  void Dry(std::vector<float>* logits) const;
  void Truncate(bool xtc_fires, std::vector<Choice>* choices) const;
  double TemperatureFor(std::vector<Choice> choices) const;

  SamplerConfig config_;
  Pcg32 random_;
  double mu_;
  std::deque<int32_t> accepted_;  // all, the newest last
};

}  // namespace tarn

#endif  // TARN_TESTS_TEXT_SAMPLER_REFERENCE_H_
