// What families have in common some of whose layers have softmax attention, and others something else.
#ifndef TARN_TOOLS_CONVERT_FAMILIES_HYBRID_H_
#define TARN_TOOLS_CONVERT_FAMILIES_HYBRID_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/convert/families/decoder.h"

namespace tarn::convert {

// Which layers are of type "full_attention": by layer_types, where all others are `other`, or else by `by_number`. Both by the
// names of transformers 5; the older ones "attention" and "mamba" are read, too.
std::vector<bool> FullLayers(Fields* fields, uint32_t layers, const char* other,
                             const std::function<bool(uint32_t layer)>& by_number);

// The attention objects and what stands around them: softmax attention as the model has it, by `full`, in the layers that have it;
// in the others `attention`, with `block` around it, and without rope where the model has it.
void SetLayers(const std::vector<bool>& has_softmax, const Json& attention, const Json& block, const std::function<Json()>& full,
               Translation* translation);

// The rules for those layers alone that are `of` their kind, with their numbers in place of "*". They come before all others.
void AddLayerRules(const std::vector<bool>& kinds, bool of, const std::vector<TensorRule>& rules, std::vector<TensorRule>* out);

// Rows of a tensor: `count` of them from `first` on, `groups` times, `stride` apart.
struct RowGroups {
  uint32_t first, count, groups, stride;
};
// A rule that takes these rows of a tensor of `all` rows.
TensorRule Rows(const std::string& from, const std::string& to, const RowGroups& rows, uint32_t all);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_FAMILIES_HYBRID_H_
