// Rotary positions that were scaled for contexts longer than those of training: other angles per position for each pair.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_ROPE_SCALING_H_
#define TARN_TOOLS_CONVERT_FAMILIES_ROPE_SCALING_H_

#include <cstdint>
#include <vector>

#include "tools/convert/json/json.h"

namespace tarn::convert {

struct RopeScaling {
  float theta = 10000.0f;
  uint32_t pairs = 0;               // that turn
  float part = 1;                   // of a head that turns
  uint32_t positions = 0;           // the longest context of the model
  uint32_t context = 0;             // the most tokens that a sequence will have
  uint32_t trained = 0;             // original_max_position_embeddings beside the object; 0: none
  std::vector<double> frequencies;  // [pairs]; empty: theta^(-2i/d)
  double attention_factor = 1;      // of cosines and sines
};

// theta^(-i / pairs)
std::vector<double> UnscaledFrequencies(const RopeScaling& scaling);

// Reads an object "rope_scaling" or "rope_parameters": the kinds default, linear, llama3, yarn and longrope.
// Errors: another kind; a field that its kind needs is missing, or out of range.
void ReadRopeScaling(Fields* fields, RopeScaling* scaling);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_ROPE_SCALING_H_
