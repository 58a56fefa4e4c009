// Weights of a checkpoint as the graph asks for them: a specification by name and shape, and who can read it.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_WEIGHTS_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::convert {

// What --random-weights puts there. `fan_in` is the last dimension, of a convolution all but the first.
enum class Init : uint8_t {
  kLinear,    // N(0, 1 / fan_in): dense layers, embeddings, learned rows
  kConv,      // N(0, 1 / fan_in)
  kControl,   // N(0, 4 / fan_in): control projections
  kNormal,    // N(0, 1): random matrices
  kZero,      // biases
  kOne,       // norms, sigma
  kGateBias,  // linspace(1, 5) over the heads
};

struct WeightSpec {
  std::string name;  // in the checkpoint
  std::vector<uint32_t> shape;
  Init init;
};

// A tensor that a checkpoint may hold a second time, under the name that it would have if it were another one.
struct TiedWeight {
  std::string name;
  WeightSpec same_as;
  const char* option;  // of config.json, which makes them one
};

inline uint64_t ElementCount(const std::vector<uint32_t>& shape) {
  uint64_t count = 1;
  for (const uint32_t dimension : shape) count *= dimension;
  return count;
}

class WeightReader {
 public:
  virtual ~WeightReader() = default;
  // Elements [first, first + count) of a tensor, row-major.
  // Errors: a value that is not finite, with its tensor and index.
  virtual void Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const = 0;
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_WEIGHTS_H_
