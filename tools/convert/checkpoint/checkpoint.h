// A checkpoint directory: config.json and weights, in one file or in shards with an index: safetensors, or files of torch.save();
// or a model file of Marian, which says both.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_CHECKPOINT_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/convert/checkpoint/safetensors.h"
#include "tools/convert/checkpoint/weights.h"
#include "tools/convert/json/mapped_file.h"

namespace tarn::convert {

// The bytes of a config.json. Errors: as ReadFile; more than 16 MB.
std::string ReadConfig(const std::string& path);

// A config.json, and where its fields stand.
struct ConfigText {
  std::string text, where;
};
// That of a folder: config.json; without one, the options of Marian's model file. Errors: neither is there; as ReadConfig and
// TakeMarianOptions.
ConfigText ReadFolderConfig(const std::string& folder);

struct CheckpointTensor {
  StoredTensor tensor;
  std::string file;    // without the directory; "": in none
  std::string origin;  // its name there
};
using CheckpointTensors = std::map<std::string, CheckpointTensor>;
// Why a tensor, by its name in the folder, cannot be what it should become.
using TensorMisfits = std::map<std::string, std::string>;

// "found F32 [2, 3] in model.safetensors"
std::string FoundText(const CheckpointTensor& entry);

class Checkpoint : public WeightReader {
 public:
  // Maps the files and reads their headers. Weights are model.safetensors; else pytorch_model.bin; else the only file whose name
  // ends in .bin, .pt, .pth or .ckpt. Where no config.json is: Marian's model file.
  // Errors: what MappedFile, ParseSafetensors and ParseTorchFile find; no weights, or one file of them and shards; an index that
  // does not fit its shards.
  explicit Checkpoint(const std::string& folder);

  const ConfigText& config() const { return config_; }
  // Every file that was opened.
  const std::vector<std::string>& files() const { return files_; }

  // The tensors of all files; under other names, from then on. Check() reports `misfits` with what it finds.
  const CheckpointTensors& tensors() const { return tensors_; }
  void Rename(CheckpointTensors tensors, TensorMisfits misfits, std::function<std::string(const std::string& name)> name_in_folder);

  // Errors, all in one: a tensor of `specs` that is missing, has another shape, or has a dtype that is no weight's; a tensor that
  // no spec names, unless it is one of `tied` and has the same values. `hint` says more of the first ones that no spec names.
  using Hint = std::function<std::string(const std::string& name)>;
  void Check(std::vector<WeightSpec> specs, const std::vector<TiedWeight>& tied = {}, const Hint& hint = nullptr) const;

  void Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const override;

 private:
  using Parse = std::map<std::string, StoredTensor>(const uint8_t* data, size_t size, const std::string& name);
  // Adds the tensors of one file and returns their names.
  std::vector<std::string> AddFile(const std::string& folder, const std::string& file, Parse* parse);
  void AddShards(const std::string& folder, const std::string& index, Parse* parse);

  void AddMarian(const std::string& folder, const std::string& file);

  ConfigText config_;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<MappedFile>> maps_;
  mutable uint64_t mapped_elements_ = 0;  // that were read since the memory of `maps_` was given back
  std::string folder_;
  CheckpointTensors tensors_;
  TensorMisfits misfits_;
  std::function<std::string(const std::string&)> name_in_folder_;  // of a tensor, for messages; nullptr: its name
};

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_CHECKPOINT_H_
