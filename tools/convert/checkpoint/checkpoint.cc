#include "tools/convert/checkpoint/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "tools/convert/checkpoint/marian_file.h"
#include "tools/convert/checkpoint/other_format.h"
#include "tools/convert/checkpoint/torch_file.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr uint64_t kMaxConfigBytes = 16'000'000;
constexpr uint64_t kMaxIndexBytes = 100'000'000;
constexpr uint64_t kMappedElements = uint64_t{1} << 25;  // whose pages stay in memory

std::map<std::string, StoredTensor> SafetensorsOf(const uint8_t* data, size_t size, const std::string& name) {
  return ParseSafetensors(data, size, name).tensors;
}

// What weights lie in; the first that a folder has is taken.
constexpr struct {
  const char* single;
  const char* index;
  std::map<std::string, StoredTensor> (*parse)(const uint8_t* data, size_t size, const std::string& name);
} kContainers[] = {
    {"model.safetensors", "model.safetensors.index.json", SafetensorsOf},
    {"pytorch_model.bin", "pytorch_model.bin.index.json", ParseTorchFile},
};

// The only file that may be one of torch.save(), or "". Errors: there are several.
std::string TorchFileOf(const std::string& folder) {
  std::set<std::string> found;
  std::error_code failed;  // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (IsTorchFile(entry.path())) found.insert(entry.path().filename().string());
  }
  if (found.size() > 1) Fail(folder, ": has ", *found.begin(), " and ", *std::next(found.begin()), ": which of them is the model?");
  return found.empty() ? "" : *found.begin();
}

// Marian's model file of a folder without config.json, or "".
std::string MarianFileOf(const std::string& folder) {
  return access((folder + "/config.json").c_str(), F_OK) == 0 ? "" : FindMarianFile(folder);
}

}  // namespace

std::string ReadConfig(const std::string& path) { return ReadFile(path, kMaxConfigBytes); }

ConfigText ReadFolderConfig(const std::string& folder) {
  const std::string marian = MarianFileOf(folder), path = folder + "/" + (marian.empty() ? "config.json" : marian);
  if (marian.empty()) return {ReadConfig(path), path};
  const MappedFile file(path);
  std::map<std::string, StoredTensor> items = ParseMarianFile(file.data(), file.size(), path);
  return {TakeMarianOptions(&items, path), path};
}

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  if (const std::string marian = MarianFileOf(folder); !marian.empty()) {
    AddMarian(folder, marian);
    return;
  }
  files_.push_back(folder + "/config.json");
  config_ = {ReadConfig(files_.back()), files_.back()};
  for (const auto& container : kContainers) {
    const bool single = access((folder + "/" + container.single).c_str(), F_OK) == 0;
    const bool sharded = access((folder + "/" + container.index).c_str(), F_OK) == 0;
    if (single && sharded) Fail(folder, ": has both ", container.single, " and ", container.index, ": which of them is the model?");
    if (single) AddFile(folder, container.single, container.parse);
    if (sharded) AddShards(folder, container.index, container.parse);
    if (single || sharded) return;
  }
  const std::string torch = TorchFileOf(folder);
  if (torch.empty()) {
    const std::string other = OtherFormat(folder);
    Fail(folder, ": has no weights: neither ", kContainers[0].single, " nor ", kContainers[0].index, ", nor a .bin or .pt file",
         other.empty() ? "" : "; " + other);
  }
  AddFile(folder, torch, ParseTorchFile);
}

void Checkpoint::AddMarian(const std::string& folder, const std::string& file) {
  const std::string path = folder + "/" + file;
  files_.push_back(path);
  maps_.push_back(std::make_unique<MappedFile>(path));
  std::map<std::string, StoredTensor> items = ParseMarianFile(maps_.back()->data(), maps_.back()->size(), path);
  config_ = {TakeMarianOptions(&items, path), path};
  for (auto& [name, tensor] : items) tensors_.emplace(name, CheckpointTensor{std::move(tensor), file, name});
}

std::vector<std::string> Checkpoint::AddFile(const std::string& folder, const std::string& file, Parse* parse) {
  files_.push_back(folder + "/" + file);
  maps_.push_back(std::make_unique<MappedFile>(files_.back()));
  std::map<std::string, StoredTensor> parsed = parse(maps_.back()->data(), maps_.back()->size(), files_.back());
  std::vector<std::string> names;
  for (auto& [name, tensor] : parsed) {
    const auto [entry, added] = tensors_.emplace(name, CheckpointTensor{std::move(tensor), file, name});
    if (!added) Fail(files_.back(), ": tensor ", ValueText(name), " is also in ", entry->second.file);
    names.push_back(name);
  }
  return names;
}

void Checkpoint::AddShards(const std::string& folder, const std::string& index, Parse* parse) {
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
    for (const std::string& name : AddFile(folder, shard, parse)) {
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
  mapped_elements_ += count;
  if (mapped_elements_ > kMappedElements) {
    for (const auto& map : maps_) map->Release();
    mapped_elements_ = 0;
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (!std::isfinite(out[i])) {
      Fail("tensor \"", entry.origin, "\" in ", entry.file, ": ", out[i], " at ", IndexText(spec.shape, first + i));
    }
  }
}

}  // namespace tarn::convert
