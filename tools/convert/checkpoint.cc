#include "tools/convert/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tools/convert/error.h"
#include "tools/convert/json.h"

namespace tarn::convert {
namespace {

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

// `first`, and how many more there are.
std::string FirstOf(const std::vector<std::string>& names) {
  const std::string more = names.size() > 1 ? " (and " + std::to_string(names.size() - 1) + " more)" : "";
  return ValueText(names[0]) + more;
}

// "[2, 17]": where element `flat` lies in a tensor of this shape.
std::string IndexText(const std::vector<uint32_t>& shape, uint64_t flat) {
  std::vector<uint64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return ShapeText(index);
}

}  // namespace

Checkpoint::Checkpoint(const std::string& folder) {
  files_.push_back(folder + "/config.json");
  config_text_ = ReadFile(files_.back());
  const bool single = access((folder + "/" + kSingle).c_str(), F_OK) == 0;
  const bool sharded = access((folder + "/" + kIndex).c_str(), F_OK) == 0;
  if (single && sharded) Fail(folder, ": has both ", kSingle, " and ", kIndex, ": which of them is the model?");
  if (!single && !sharded) Fail(folder, ": has neither ", kSingle, " nor ", kIndex);
  if (single) {
    AddFile(folder, kSingle);
  } else {
    AddShards(folder, kIndex);
  }
}

std::vector<std::string> Checkpoint::AddFile(const std::string& folder, const std::string& file) {
  files_.push_back(folder + "/" + file);
  maps_.push_back(std::make_unique<MappedFile>(files_.back()));
  const Safetensors parsed = ParseSafetensors(maps_.back()->data(), maps_.back()->size(), files_.back());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parsed.tensors) {
    const auto [entry, added] = tensors_.emplace(name, Entry{tensor, file});
    if (!added) Fail(files_.back(), ": tensor ", ValueText(name), " is also in ", entry->second.file);
    names.push_back(name);
  }
  return names;
}

void Checkpoint::AddShards(const std::string& folder, const std::string& index) {
  const std::string path = folder + "/" + index;
  files_.push_back(path);
  const Json parsed = ParseJson(ReadFile(path), path);
  Fields fields(parsed, path);
  fields.Find("metadata");
  const Json* map = fields.Find("weight_map");
  fields.Finish();
  if (map == nullptr || !map->is_object()) Fail(path, ": weight_map: an object is missing");

  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) Fail(path, ": weight_map: ", ValueText(tensor), ": ", ValueText(file), " is not a string");
    const std::string shard = file.get<std::string>();
    // A shard lies beside its index: a name must not lead out of the folder.
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

void Checkpoint::Check(const std::vector<WeightSpec>& specs) const {
  std::vector<std::string> missing, extra;
  std::set<std::string> wanted;
  for (const WeightSpec& spec : specs) {
    wanted.insert(spec.name);
    const auto found = tensors_.find(spec.name);
    if (found == tensors_.end()) {
      missing.push_back(spec.name);
      continue;
    }
    const auto& [tensor, file] = found->second;
    if (!std::equal(tensor.shape.begin(), tensor.shape.end(), spec.shape.begin(), spec.shape.end())) {
      Fail("tensor \"", spec.name, "\" in ", file, " has shape ", ShapeText(tensor.shape), ", the config wants ",
           ShapeText(spec.shape));
    }
    if (tensor.dtype == StoredType::kI32) {
      Fail("tensor \"", spec.name, "\" in ", file, " has dtype I32, weights are F32, F16 or BF16");
    }
  }
  for (const auto& [name, entry] : tensors_) {
    if (wanted.count(name) == 0) extra.push_back(name);
  }
  if (!missing.empty()) Fail("the checkpoint lacks tensor ", FirstOf(missing), " that its config wants");
  if (!extra.empty()) Fail("the checkpoint has tensor ", FirstOf(extra), " that its config has no use for");
}

void Checkpoint::Read(const WeightSpec& spec, uint64_t first, uint64_t count, float* out) const {
  const Entry& entry = tensors_.at(spec.name);
  ReadAsF32(entry.tensor, first, count, out);
  for (uint64_t i = 0; i < count; ++i) {
    if (!std::isfinite(out[i])) {
      Fail("tensor \"", spec.name, "\" in ", entry.file, ": ", out[i], " at ", IndexText(spec.shape, first + i));
    }
  }
}

}  // namespace tarn::convert
