// Checkpoint::Check: every tensor that does not fit, in one report.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/convert/checkpoint/checkpoint.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr size_t kMaxLines = 50;
constexpr size_t kMostHints = 5;  // a file of another kind has no tensor that fits
constexpr uint64_t kBlockElements = uint64_t{1} << 16;

// Lines about tensors, in the order of their names, of which the first are kept and all are counted.
class Misfits {
 public:
  void Add(size_t* kind, const std::string& name, const std::string& text) {
    ++*kind;
    if (lines_.size() < kMaxLines) lines_.push_back(ValueText(name) + ": " + text);
  }

  // Throws if there is any.
  void Report(const std::string& folder) {
    const size_t count = missing + different + unknown;
    if (count == 0) return;
    if (count > lines_.size()) lines_.push_back("... and " + std::to_string(count - lines_.size()) + " more");
    throw ConvertError(folder + ": " + std::to_string(count) + (count == 1 ? " tensor does" : " tensors do") +
                           " not fit config.json (missing: " + std::to_string(missing) +
                           ", different: " + std::to_string(different) + ", unknown: " + std::to_string(unknown) +
                           "); tarn-convert --list-tensors prints what is expected:",
                       std::move(lines_));
  }

  size_t missing = 0, different = 0, unknown = 0;

 private:
  std::vector<std::string> lines_;
};

bool SameShape(const StoredTensor& tensor, const std::vector<uint32_t>& shape) {
  return std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end());
}

// Equal as numbers or as bits; a NaN is found when it is converted.
bool SameValue(float a, float b) { return a == b || std::memcmp(&a, &b, sizeof(a)) == 0; }

// What is wrong with a tensor, or nothing.
std::string Misfit(const WeightSpec& spec, const CheckpointTensor& entry) {
  const bool weight = IsFloating(entry.tensor.dtype);
  if (weight && SameShape(entry.tensor, spec.shape)) return "";
  return FoundText(entry) + ", expected " + (weight ? "" : "F32, F16 or BF16 ") + ShapeText(spec.shape);
}

// The same for a tensor that is there although it is tied to another one.
std::string MisfitOfTied(const CheckpointTensor& entry, const TiedWeight& tied, const CheckpointTensors& tensors) {
  const WeightSpec& spec = tied.same_as;
  const std::string rule =
      "expected the values of " + spec.name + ", to which config.json ties it (\"" + tied.option + "\": false would convert both)";
  const auto other = tensors.find(spec.name);
  if (other == tensors.end() || !Misfit(spec, other->second).empty()) return "";  // the report says so already
  if (!Misfit(spec, entry).empty()) return FoundText(entry) + ", " + rule;
  std::vector<float> values(kBlockElements), expected(kBlockElements);
  for (uint64_t first = 0; first < entry.tensor.elements; first += kBlockElements) {
    const uint64_t count = std::min(kBlockElements, entry.tensor.elements - first);
    ReadAsF32(entry.tensor, first, count, values.data());
    ReadAsF32(other->second.tensor, first, count, expected.data());
    for (uint64_t i = 0; i < count; ++i) {
      if (SameValue(values[i], expected[i])) continue;
      std::ostringstream text;
      text << "found " << values[i] << " at " << IndexText(spec.shape, first + i) << " in " << entry.file << " where " << spec.name
           << " has " << expected[i] << ", " << rule;
      return text.str();
    }
  }
  return "";
}

bool EndsInName(const std::string& path, const std::string& name) {
  return path.size() > name.size() && path[path.size() - name.size() - 1] == '.' &&
         path.compare(path.size() - name.size(), name.size(), name) == 0;
}

// The expected name that differs from this one by a prefix ("model.", "module."), or nothing.
std::string OtherPrefix(const std::string& name, const std::vector<WeightSpec>& specs) {
  for (const WeightSpec& spec : specs) {
    if (EndsInName(spec.name, name) || EndsInName(name, spec.name)) return "; the expected name is " + ValueText(spec.name);
  }
  return "";
}

// The same for a tensor that no spec names.
std::string MisfitOfUnknown(const std::string& name, const CheckpointTensor& entry, const std::vector<TiedWeight>& tied,
                            const CheckpointTensors& tensors, const Checkpoint::Hint& hint) {
  for (const TiedWeight& candidate : tied) {
    if (candidate.name == name) return MisfitOfTied(entry, candidate, tensors);
  }
  return "unknown, " + FoundText(entry) + (hint ? hint(name) : "");
}

}  // namespace

std::string FoundText(const CheckpointTensor& entry) {
  return std::string("found ") + StoredTypeName(entry.tensor.dtype) + " " + ShapeText(entry.tensor.shape) + " in " + entry.file;
}

void Checkpoint::Check(std::vector<WeightSpec> specs, const std::vector<TiedWeight>& tied, const Hint& hint) const {
  std::sort(specs.begin(), specs.end(), [](const WeightSpec& a, const WeightSpec& b) { return a.name < b.name; });
  Misfits misfits;
  const Hint with_names = [&](const std::string& name) {
    const std::string other = OtherPrefix(name, specs);
    return other.empty() && hint ? hint(name) : other;
  };
  auto found = tensors_.begin();
  const auto unknown_before = [&](const std::string* name) {
    for (; found != tensors_.end() && (name == nullptr || found->first < *name); ++found) {
      const std::string text =
          MisfitOfUnknown(found->first, found->second, tied, tensors_, misfits.unknown < kMostHints ? with_names : nullptr);
      if (!text.empty()) misfits.Add(&misfits.unknown, found->second.origin, text);
    }
  };
  for (const auto& [name, text] : misfits_) misfits.Add(&misfits.different, name, text);
  for (const WeightSpec& spec : specs) {
    unknown_before(&spec.name);
    const std::string name = name_in_folder_ ? name_in_folder_(spec.name) : spec.name;
    if (found == tensors_.end() || found->first != spec.name) {
      if (misfits_.count(name) != 0) continue;  // reported
      misfits.Add(&misfits.missing, name, "missing, expected " + ShapeText(spec.shape));
      continue;
    }
    const std::string text = Misfit(spec, found->second);
    if (!text.empty()) misfits.Add(&misfits.different, name, text);
    ++found;
  }
  unknown_before(nullptr);
  misfits.Report(folder_);
}

}  // namespace tarn::convert
