#include "tools/convert/checkpoint/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tools/convert/checkpoint/other_format.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

constexpr uint64_t kMaxConfigBytes = 16'000'000;
constexpr uint64_t kMaxIndexBytes = 100'000'000;

}  // namespace

std::string ReadConfig(const std::string& path) { return ReadFile(path, kMaxConfigBytes); }

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  files_.push_back(folder + "/config.json");
  config_text_ = ReadConfig(files_.back());
  const bool single = access((folder + "/" + kSingle).c_str(), F_OK) == 0;
  const bool sharded = access((folder + "/" + kIndex).c_str(), F_OK) == 0;
  if (single && sharded) Fail(folder, ": has both ", kSingle, " and ", kIndex, ": which of them is the model?");
  if (!single && !sharded) {
    const std::string other = OtherFormat(folder);
    Fail(folder, ": has neither ", kSingle, " nor ", kIndex, other.empty() ? "" : "; " + other);
  }
  if (single) {
    AddFile(folder, kSingle);
  } else {
    AddShards(folder, kIndex);
  }
}

std::vector<std::string> Checkpoint::AddFile(const std::string& folder, const std::string& file) {
  files_.push_back(folder + "/" + file);
  maps_.push_back(std::make_unique<MappedFile>(files_.back()));
  Safetensors parsed = ParseSafetensors(maps_.back()->data(), maps_.back()->size(), files_.back());
  std::vector<std::string> names;
  for (auto& [name, tensor] : parsed.tensors) {
    const auto [entry, added] = tensors_.emplace(name, CheckpointTensor{std::move(tensor), file, name});
    if (!added) Fail(files_.back(), ": tensor ", ValueText(name), " is also in ", entry->second.file);
    names.push_back(name);
  }
  return names;
}

void Checkpoint::AddShards(const std::string& folder, const std::string& index) {
  const std::string path = folder + "/" + index;
  files_.push_back(path);
  const Json parsed = ParseJson(ReadFile(path, kMaxIndexBytes), path);
  Fields fields(parsed, path);
  fields.Find("metadata");
  const Json* map = fields.Find("weight_map");
  fields.Finish();
  if (map == nullptr || !map->is_object()) Fail(path, ": weight_map: an object is missing");

  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) Fail(path, ": weight_map: ", ValueText(tensor), ": ", ValueText(file), " is not a string");
    const std::string shard = file.get<std::string>();
    // A shard lies beside its index: a name must not lead out of the directory.
    if (shard.empty() || shard.find('/') != std::string::npos) {
      Fail(path, ": weight_map: ", ValueText(tensor), ": ", ValueText(file), " is not the name of a file");
    }
    shards[shard].insert(tensor);
  }
  for (const auto& [shard, expected] : shards) {
    for (const std::string& name : AddFile(folder, shard)) {
      if (expected.count(name) == 0) Fail(folder, "/", shard, ": tensor ", ValueText(name), " is not in ", index);
    }
    for (const std::string& name : expected) {
      if (tensors_.count(name) == 0) Fail(folder, "/", shard, ": tensor ", ValueText(name), " of ", index, " is missing");
    }
  }
}

void Checkpoint::Rename(CheckpointTensors tensors, TensorMisfits misfits,
                        std::function<std::string(const std::string& name)> name_in_folder) {
  tensors_ = std::move(tensors);
  misfits_ = std::move(misfits);
  name_in_folder_ = std::move(name_in_folder);
}

void Checkpoint::Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const {
  const CheckpointTensor& entry = tensors_.at(spec.name);
  ReadAsF32(entry.tensor, first, count, out);
  for (uint64_t i = 0; i < count; ++i) {
    if (!std::isfinite(out[i])) {
      Fail("tensor \"", entry.origin, "\" in ", entry.file, ": ", out[i], " at ", IndexText(spec.shape, first + i));
    }
  }
}

}  // namespace tarn::convert
