// A checkpoint directory in tarn's own layout (docs/models.md): what a published checkpoint says, for programs that train.
#ifndef TARN_TOOLS_CONVERT_WRITER_CHECKPOINT_WRITER_H_
#define TARN_TOOLS_CONVERT_WRITER_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/weights.h"

namespace tarn::convert {

struct CheckpointSource {
  std::string config_text;  // config.json of tarn
  std::vector<WeightSpec> specs;
  const WeightReader& weights;
  std::string folder;               // the files of tokenizer and chat template lie there
  std::vector<std::string> texts;   // their names
  std::string tokenizer_config;     // what tokenizer_config.json is to say; "": nothing
  std::vector<std::string> inputs;  // files that are read
};

// Writes `folder`/model.safetensors (F32), copies of the files `texts`, and config.json: the last one, so that a directory that
// is incomplete is no checkpoint. `progress` gets the number of elements after each block, and may throw. Returns the bytes of
// model.safetensors. Errors: the directory has a config.json or model.safetensors; what the system refuses; what the weights have
// that is not finite.
uint64_t WriteCheckpoint(const CheckpointSource& source, const std::string& folder,
                         const std::function<void(uint64_t elements)>& progress);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_WRITER_CHECKPOINT_WRITER_H_
