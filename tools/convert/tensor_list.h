// The tensors of checkpoints, by what config.json says: from the graphs that the converter builds for sample configs.
#ifndef TARN_TOOLS_CONVERT_TENSOR_LIST_H_
#define TARN_TOOLS_CONVERT_TENSOR_LIST_H_

#include <string>
#include <vector>

#include "tools/convert/json/field_log.h"

namespace tarn::convert {

struct TensorRow {
  std::string name;   // layers.{i} for all layers
  std::string shape;  // of fields: "[num_kv_heads, num_features, head_dim]"
  std::string where;  // what config.json says where there is one: `"gate" is "forget"`; "": always
};

// Those of a task, with the attention that has none of its own. `runs`: of ExploreConfig.
std::vector<TensorRow> TaskTensors(std::vector<FieldRun> runs);
// Those that an attention system adds to them. "attn." stands for the prefix of the layer.
std::vector<TensorRow> SystemTensors(const std::string& system);

// Lines of three columns, which two spaces or more separate: tensor, shape, where. "" if there are no rows.
std::string TensorText(const std::vector<TensorRow>& rows);

// What a tensor would need that config.json has no use for: "; it is read where ...",
// "; attention \"rfa\" has it where ...", or "; a tensor of attention ..."; "" if nobody has such a tensor.
std::string UnknownTensorHint(const std::string& name, const std::string& config_text);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_TENSOR_LIST_H_
