// Which tensor of a published checkpoint becomes which tensor of tarn. Nothing is copied: a tensor is seen in another way.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_TENSOR_RULE_H_
#define TARN_TOOLS_CONVERT_FAMILIES_TENSOR_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/checkpoint.h"

namespace tarn::convert {

// "*" stands for the number of a layer, the same in both names.
struct TensorRule {
  std::string from;         // "": zeros, of shape `zeros`, for every layer below `layers`
  std::string to;           // "": the tensor is not needed
  bool transposed = false;  // [in, out] becomes [out, in]; before rows are taken
  uint32_t first_row = 0;
  uint32_t rows = 0;  // 0: all from first_row on
  std::vector<uint64_t> zeros = {};
  uint32_t layers = 1;
  bool flat = false;                  // of one dimension
  std::string add_first_row_of = "";  // another tensor, whose first row is added to every row
};

// The tensors under the names of tarn. One that no rule names keeps its own, and so does one whose shape a rule does not fit.
// `prefix` may stand before the names in the folder, or be left out there.
CheckpointTensors ApplyRules(const CheckpointTensors& tensors, const std::vector<TensorRule>& rules, const std::string& prefix);
// The name in the folder of what the rules make `name` of.
std::string NameInFolder(const std::string& name, const std::vector<TensorRule>& rules, const std::string& prefix);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_TENSOR_RULE_H_
