// Calibrated quantization: matrices rounded for the inputs that they have on a text.
//
// Layer after layer: the model runs over the text in f32, and once more with all matrices rounded that come before. Their inputs in
// the second run are what the weights of the layer are rounded for (round.h), after these were changed so that they make of them
// what they should make of those of the first run: what was lost before is made good as far as a layer can.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_CALIBRATE_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_CALIBRATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/graph/graph.h"
#include "tools/convert/graph/rounded.h"

namespace tarn::convert {

struct CalibrationInput {
  std::vector<int32_t> tokens;  // ids that the model has, at least one
  uint32_t threads;             // >= 1
};

// At most `most` >= 1 tokens: blocks from all over `tokens`, one after the other.
std::vector<int32_t> SpreadTokens(const std::vector<int32_t>& tokens, uint64_t most);

// Rounds the int8, int4, int3 and int2 matrices of `graph`, a CausalLm. `f32`: the same graph in f32. `output`: the file that is
// converted to; scratch files lie beside it. Takes memory for 32 bytes times the square of the longest row of a matrix, for 8
// bytes times the elements of a matrix that adds to a residual, for two models in f32, and for what is returned. Shows its
// progress. Errors: no such matrix; those of ScratchModel and Rounding; "interrupted".
RoundedMatrices Calibrate(const Graph& graph, const Graph& f32, const WeightReader& weights, const CalibrationInput& input,
                          const std::string& output);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_CALIBRATE_H_
