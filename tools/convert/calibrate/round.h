// Rounds a matrix so that what it makes of its inputs on a text changes least.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_ROUND_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/convert/calibrate/factor.h"
#include "tools/convert/graph/rounded.h"

namespace tarn::convert {

// Called with the number of weights that were done since the last call, always by the thread that waits for them. What it throws
// ends the work.
using RoundProgress = std::function<void(uint64_t weights)>;

class Rounding {
 public:
  // `moments` are those of the input, damped. `threads`: >= 1; the result does not depend on it.
  Rounding(const SecondMoments& moments, uint32_t threads);

  // The weights [rows, moments.size] that make of the input as it is what `weights` made of it before it drifted, by least squares:
  // W + (W D + R) H^-1 with the moments' drift D and residual R: the sum with the residual is made what it was, as far as the layer
  // can. Without a drift `weights` themselves.
  std::vector<float> MakeGood(const std::vector<float>& weights, const RoundProgress& progress = nullptr) const;

  // Rows of `weights` [rows, moments.size] as int8, int4, int3 or int2 (I8, I4, I3, I2; but of I8 the size is a multiple
  // of kScaleBlock). Minimises the sum over rows of e^T H e, e the error of a row, as GPTQ does (Frantar et al. 2022, "GPTQ:
  // Accurate Post-Training Quantization for Generative Pre-trained Transformers", section 3): from left to right, the error of a
  // weight made good by those after it. A scale of a block is chosen when its block is reached, of the weights as they are then,
  // for the least cost of the block with compensation. Then single steps of weights and scales go on as long as they lower the sum.
  // Errors: a weight that is not finite.
  RoundedMatrix Round(const std::vector<float>& weights, format::DType dtype, const RoundProgress& progress = nullptr) const;

  // e^T H e, of a row of errors: [moments.size].
  double Cost(const std::vector<float>& error) const;

 private:
  class Tile;

  const SecondMoments& moments_;
  const uint32_t threads_;
  double mean_ = 0;             // of the diagonal of H, which is the unit of what follows: f32 has the range for it then
  std::vector<float> factor_;   // U of CompensationFactor(), each row divided by its diagonal
  std::vector<float> spread_;   // 1 / diagonal of U
  std::vector<float> hessian_;  // H
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_ROUND_H_
