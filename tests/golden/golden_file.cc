#include "tests/golden/golden_file.h"

#include <algorithm>
#include <cstring>

#include "tools/convert/json/error.h"

namespace tarn::golden {

using convert::Fail;

File::File(const std::string& path) : path_(path), map_(path), parsed_(convert::ParseSafetensors(map_.data(), map_.size(), path)) {}

const std::string& File::Text(const char* key) const {
  const auto found = parsed_.metadata.find(key);
  if (found == parsed_.metadata.end()) Fail(path_, ": __metadata__ has no \"", key, "\"");
  return found->second;
}

convert::Json File::Object(const char* key) const { return convert::ParseJson(Text(key), path_ + ": " + key); }

const convert::StoredTensor& File::Stored(const std::string& name) const {
  const auto found = parsed_.tensors.find(name);
  if (found == parsed_.tensors.end()) Fail(path_, ": has no tensor \"", name, "\"");
  return found->second;
}

bool File::IsInteger(const std::string& name) const { return Stored(name).dtype == convert::StoredType::kI32; }

GoldenTensor File::Tensor(const std::string& name) const {
  const convert::StoredTensor& stored = Stored(name);
  if (IsInteger(name)) Fail(path_, ": tensor \"", name, "\" is I32");
  GoldenTensor tensor{name, stored.shape, std::vector<float>(stored.elements)};
  convert::ReadAsF32(stored, 0, stored.elements, tensor.values.data());
  return tensor;
}

std::vector<int32_t> File::Integers(const std::string& name) const {
  const convert::StoredTensor& stored = Stored(name);
  if (!IsInteger(name)) Fail(path_, ": tensor \"", name, "\" is not I32");
  std::vector<int32_t> values(stored.elements);
  std::memcpy(values.data(), stored.data, values.size() * sizeof(int32_t));
  return values;
}

uint64_t File::Rows(const std::string& name) const {
  const convert::StoredTensor& stored = Stored(name);
  if (stored.shape.empty() || stored.elements == 0) Fail(path_, ": tensor \"", name, "\" has no rows");
  return stored.shape[0];
}

std::vector<std::string> File::StateNames() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parsed_.tensors) {
    if (name.rfind("state_", 0) == 0) names.push_back(name);
  }
  return names;
}

void GoldenWeights::Read(const convert::WeightSpec& spec, uint64_t first, uint64_t count, float* out) const {
  if (spec.name == kFoldedSigma) {
    std::fill_n(out, count, 1.0f);
    return;
  }
  std::string name = spec.name;
  std::replace(name.begin(), name.end(), '.', '_');
  if (file_.IsInteger(name)) {
    const std::vector<int32_t> values = file_.Integers(name);
    if (values.size() < first + count) Fail(file_.path(), ": tensor \"", name, "\" has ", values.size(), " elements");
    std::transform(&values[first], &values[first] + count, out, [](int32_t value) { return static_cast<float>(value); });
    return;
  }
  const GoldenTensor tensor = file_.Tensor(name);
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), spec.shape.begin(), spec.shape.end())) {
    Fail(file_.path(), ": tensor \"", name, "\" has shape ", convert::ShapeText(tensor.shape), ", the attributes want ",
         convert::ShapeText(spec.shape));
  }
  std::copy_n(tensor.values.begin() + static_cast<std::ptrdiff_t>(first), count, out);
}

}  // namespace tarn::golden
