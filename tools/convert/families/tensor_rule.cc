#include "tools/convert/families/tensor_rule.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

bool StartsWith(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// What stands for "*" in `name`; "" where the pattern has none. nullopt: the pattern does not fit.
std::optional<std::string> Match(const std::string& pattern, const std::string& name) {
  if (EndsWith(pattern, ".")) return StartsWith(name, pattern) ? std::optional<std::string>("") : std::nullopt;
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string before = pattern.substr(0, star), behind = pattern.substr(star + 1);
  if (name.size() <= before.size() + behind.size() || !StartsWith(name, before) || !EndsWith(name, behind)) return std::nullopt;
  const std::string number = name.substr(before.size(), name.size() - before.size() - behind.size());
  const bool digits = std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::optional<std::string>(number) : std::nullopt;
}

std::string Filled(const std::string& pattern, const std::string& number) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.substr(0, star) + number + pattern.substr(star + 1);
}

// The rows that the rule names, in its order.
std::optional<StoredTensor> WithOrder(StoredTensor tensor, const TensorRule& rule) {
  if (tensor.shape.empty() || tensor.shape[0] != rule.all_rows) return std::nullopt;
  const uint64_t row = tensor.elements / rule.all_rows;
  tensor.row_order = rule.order;
  tensor.shape[0] = rule.order->size();
  tensor.elements = tensor.shape[0] * row;
  if (rule.heads > 0) {
    tensor.shape[0] /= rule.heads;
    tensor.shape.insert(tensor.shape.begin(), rule.heads);
  }
  return tensor;
}

// The tensor as the rule sees it; nullopt: it has not the shape for that.
std::optional<StoredTensor> Seen(StoredTensor tensor, const TensorRule& rule) {
  if (rule.transposed) {
    if (tensor.shape.size() != 2) return std::nullopt;
    tensor.column_stride = tensor.shape[1];
    std::swap(tensor.shape[0], tensor.shape[1]);
  }
  if (rule.matrix) {
    if (tensor.shape.size() != 3 || tensor.shape[1] != 1) return std::nullopt;
    tensor.shape = {tensor.shape[0], tensor.shape[2]};
  }
  tensor.added = rule.scale * tensor.added + rule.added;
  tensor.scale *= rule.scale;
  if (rule.order != nullptr) return WithOrder(std::move(tensor), rule);
  if (rule.first_row != 0 || rule.rows != 0) {
    if (tensor.shape.empty() || tensor.shape[0] < uint64_t{rule.first_row} + rule.rows) return std::nullopt;
    if (rule.all_rows != 0 && tensor.shape[0] != rule.all_rows) return std::nullopt;
    const uint64_t all = tensor.shape[0], row = all == 0 ? 0 : tensor.elements / all;
    tensor.first += rule.first_row * (rule.transposed ? 1 : row);
    tensor.shape[0] = rule.rows != 0 ? rule.rows : all - rule.first_row;
    tensor.elements = tensor.shape[0] * row;
  }
  if (rule.flat) tensor.shape = {tensor.elements};
  return tensor;
}

// The same with rows appended.
std::optional<StoredTensor> WithMoreRows(std::optional<StoredTensor> tensor, const TensorRule& rule) {
  if (!tensor || rule.more_rows == 0) return tensor;
  if (tensor->shape.empty() || tensor->shape[0] == 0) return std::nullopt;
  tensor->appended = rule.more_rows * (tensor->elements / tensor->shape[0]);
  tensor->appended_value = rule.more;
  tensor->shape[0] += rule.more_rows;
  tensor->elements += tensor->appended;
  return tensor;
}

// What Seen() asks for.
std::string Expected(const TensorRule& rule) {
  const uint64_t least = uint64_t{rule.first_row} + std::max(rule.rows, 1u);
  const std::string count = rule.all_rows != 0 ? std::to_string(rule.all_rows) : "at least " + std::to_string(least);
  if (rule.matrix) return "[columns, 1, taps]";
  return rule.transposed ? "a matrix of " + count + " columns" : count + " rows";
}

// The same with what the rule adds; `prefix`: what stands before names in the folder, `number`: of the layer.
std::optional<StoredTensor> WithSum(std::optional<StoredTensor> tensor, const TensorRule& rule, const CheckpointTensors& tensors,
                                    const std::string& prefix, const std::string& number) {
  if (!tensor || rule.plus == nullptr) return tensor;
  const std::string name = prefix + Filled(rule.plus->from, number);
  const auto other = tensors.find(name);
  if (other == tensors.end()) Fail("tensor ", ValueText(name), ": missing, expected ", Expected(*rule.plus));
  const auto added = Seen(other->second.tensor, *rule.plus);
  bool fits = added && added->elements > 0 && IsFloating(added->dtype) && added->shape.size() == tensor->shape.size();
  for (size_t i = 0; fits && i < tensor->shape.size(); ++i) {
    fits = added->shape[i] == tensor->shape[i] || (i == 0 && tensor->shape.size() > 1 && added->shape[0] == 1);
  }
  if (!fits) {
    Fail(other->second.file, ": tensor ", ValueText(name), ": found ", ShapeText(other->second.tensor.shape), ", expected ",
         Expected(*rule.plus), ", which are added to ", ShapeText(tensor->shape));
  }
  tensor->added_row = std::make_shared<const StoredTensor>(*added);
  return tensor;
}

// Errors: a tensor that is dropped as the copy of another one has other values.
void CheckCopy(const std::string& name, const CheckpointTensor& copy, const std::string& same_as, const CheckpointTensors& tensors,
               const std::string& prefix) {
  constexpr uint64_t kBlock = 1 << 16;
  auto other = tensors.find(prefix + same_as);
  if (other == tensors.end()) other = tensors.find(same_as);
  if (other == tensors.end()) return;
  const StoredTensor &a = copy.tensor, &b = other->second.tensor;
  bool same = a.elements == b.elements && IsFloating(a.dtype) && IsFloating(b.dtype);
  std::vector<float> found(std::min(kBlock, a.elements)), expected(found.size());
  for (uint64_t first = 0; same && first < a.elements; first += kBlock) {
    const uint64_t count = std::min(kBlock, a.elements - first);
    ReadAsF32(a, first, count, found.data());
    ReadAsF32(b, first, count, expected.data());
    same = std::memcmp(found.data(), expected.data(), count * sizeof(float)) == 0;
  }
  if (!same) {
    Fail(copy.file, ": tensor ", ValueText(name), " is not the same as ", ValueText(other->first), ", to which it is tied");
  }
}

void AddZeros(const TensorRule& rule, CheckpointTensors* out) {
  StoredTensor zeros{StoredType::kF32, rule.zeros, nullptr, 1};
  for (const uint64_t size : rule.zeros) zeros.elements *= size;
  zeros.added = rule.added;
  zeros = *WithMoreRows(zeros, rule);
  for (uint32_t layer = 0; layer < rule.layers; ++layer) {
    out->emplace(Filled(rule.to, std::to_string(layer)), CheckpointTensor{zeros, "", ""});
  }
}

}  // namespace

CheckpointTensors ApplyRules(const CheckpointTensors& tensors, const std::vector<TensorRule>& rules, const std::string& prefix,
                             TensorMisfits* misfits) {
  CheckpointTensors out;
  for (const auto& [name, entry] : tensors) {
    const std::string base = StartsWith(name, prefix) ? name.substr(prefix.size()) : name;
    bool taken = false;
    for (const TensorRule& rule : rules) {
      const auto number = rule.from.empty() ? std::nullopt : Match(rule.from, base);
      if (!number) continue;
      taken = true;
      if (rule.to.empty()) {
        if (!rule.same_as.empty()) CheckCopy(name, entry, Filled(rule.same_as, *number), tensors, prefix);
        continue;
      }
      const auto seen =
          WithSum(WithMoreRows(Seen(entry.tensor, rule), rule), rule, tensors, name.substr(0, name.size() - base.size()), *number);
      if (!seen) {
        (*misfits)[name] = FoundText(entry) + ", expected " + Expected(rule);
        continue;
      }
      const auto [other, added] = out.emplace(Filled(rule.to, *number), CheckpointTensor{*seen, entry.file, name});
      if (!added) Fail(entry.file, ": tensor ", ValueText(name), " is the same as ", ValueText(other->second.origin));
    }
    if (!taken) out.emplace(name, entry);
  }
  for (const TensorRule& rule : rules) {
    if (!rule.zeros.empty()) AddZeros(rule, &out);
  }
  return out;
}

std::string NameInFolder(const std::string& name, const std::vector<TensorRule>& rules, const std::string& prefix) {
  for (const TensorRule& rule : rules) {
    if (rule.from.empty()) continue;
    const auto number = Match(rule.to, name);
    if (number) return (rule.outside_base ? "" : prefix) + Filled(rule.from, *number);
  }
  return name;
}

}  // namespace tarn::convert
