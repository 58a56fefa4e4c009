// Which tensor of a published checkpoint becomes which tensor of tarn. Nothing is copied: a tensor is seen in another way.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_TENSOR_RULE_H_
#define TARN_TOOLS_CONVERT_FAMILIES_TENSOR_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/checkpoint.h"

namespace tarn::convert {

// "*" stands for the number of a layer, the same in both names. A name to read that ends in "." stands for all that begin so.
struct TensorRule {
  std::string from;         // "": there is none
  std::string to;           // "": the tensor is not needed
  bool transposed = false;  // [in, out] becomes [out, in]; before rows are taken
  uint32_t first_row = 0;
  uint32_t rows = 0;      // 0: all from first_row on
  uint32_t all_rows = 0;  // that there have to be; 0: any number
  std::shared_ptr<const std::vector<uint32_t>> order =
      {};                            // the rows that are taken, each below all_rows; {}: by first_row and rows
  float scale = 1, added = 0;        // an element x becomes scale * x + added
  std::vector<uint64_t> zeros = {};  // the shape of zeros, or with `added` of that, for every layer below `layers` that has no such
                                     // tensor; {}: an error
  uint32_t layers = 1;
  bool flat = false;       // of one dimension; after rows were taken
  uint32_t more_rows = 0;  // that are appended, of `more` alone
  float more = 0;
  bool matrix = false;        // [rows, 1, columns] becomes [rows, columns]
  uint32_t heads = 0;         // above 0, with an order: its rows are divided among so many heads, a dimension before them
  bool outside_base = false;  // a part of the head: no prefix stands before its name
  std::string same_as = "";   // of a tensor that is not needed: another one, of which it has to be a copy, if that is there
  std::shared_ptr<const TensorRule> plus = {};  // what is added: another tensor as this rule of `from` sees it, of the same shape,
                                                // or of one row, which is added to every row
};

// The tensors under the names of tarn. One that no rule names keeps its own. `prefix` may stand before the names in the folder, or
// be left out there. `misfits` gets the tensors that have not the rows or the dimensions that a rule asks for. Errors: one that is
// there twice; one that is not what it is tied to.
CheckpointTensors ApplyRules(const CheckpointTensors& tensors, const std::vector<TensorRule>& rules, const std::string& prefix,
                             TensorMisfits* misfits);
// The name in the folder of what the rules make `name` of; `prefix`: "" where the folder leaves it out.
std::string NameInFolder(const std::string& name, const std::vector<TensorRule>& rules, const std::string& prefix);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_TENSOR_RULE_H_
