// The most probable ones of a row of logits.
#ifndef TARN_TOOLS_TARN_PROBABILITIES_H_
#define TARN_TOOLS_TARN_PROBABILITIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tarn_cli {

struct Probability {
  uint32_t id;
  double value;
};

// At most `most` of softmax(logits), best first, the lower id of equal ones. Throws Failure if a logit is not finite.
std::vector<Probability> MostProbable(const float* logits, uint32_t size, size_t most);

}  // namespace tarn_cli

#endif  // TARN_TOOLS_TARN_PROBABILITIES_H_
