// Weights drawn from a seed: a model of any shape without a checkpoint.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_RANDOM_WEIGHTS_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_RANDOM_WEIGHTS_H_

#include <cstdint>

#include "tools/convert/checkpoint/weights.h"

namespace tarn::convert {

// Element i of a tensor depends on the seed, the tensor's name and i alone, so that neither the order of reading nor the machine
// matters: bits come from SplitMix64 as a counter hash, and they become a normal deviate in integer arithmetic.
class RandomWeights : public WeightReader {
 public:
  explicit RandomWeights(uint64_t seed) : seed_(seed) {}
  void Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const override;

 private:
  const uint64_t seed_;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_RANDOM_WEIGHTS_H_
