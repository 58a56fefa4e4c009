#include "tools/convert/checkpoint/torch_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/convert/checkpoint/torch_storages.h"
#include "tools/convert/json/error.h"
#include "tools/convert/json/json.h"

namespace tarn::convert {
namespace {

constexpr size_t kMaxDimensions = 8;
constexpr uint64_t kMostUses = 64;  // of an element of the file by tensors: more would be work without bytes
// What dictionaries of training runs call the state dict of the model in them.
constexpr std::string_view kStateDicts[] = {"state_dict", "model", "module", "model_state_dict"};

// Tensors out of the nodes of a pickle.
class StateDict {
 public:
  StateDict(const TorchPickle& torch, uint64_t file_bytes, const std::string& name)
      : torch_(torch), nodes_(torch.pickle.nodes), file_bytes_(file_bytes), name_(name) {}

  std::map<std::string, StoredTensor> Tensors() {
    std::map<std::string, StoredTensor> tensors;
    const std::vector<uint32_t> items = Members();
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleNode& key = nodes_[items[i]];
      if (key.kind != PickleKind::kText) Fail(name_, ": a key is ", PickleKindName(key.kind), ", expected the name of a tensor");
      const std::string tensor(key.text);
      where_ = name_ + ": tensor " + ValueText(tensor);
      if (!tensors.emplace(tensor, Tensor(nodes_[items[i + 1]])).second) Fail(where_, " is there twice");
    }
    return tensors;
  }

 private:
  bool IsCall(const PickleNode& node, TorchGlobal first, TorchGlobal last) const {
    if (node.kind != PickleKind::kCall) return false;
    const int64_t function = nodes_[node.items[0]].integer;
    return function >= static_cast<int64_t>(first) && function <= static_cast<int64_t>(last);
  }

  // Keys and values of a dictionary; nullopt: it is none.
  std::optional<std::vector<uint32_t>> Items(const PickleNode& node) const {
    if (node.kind == PickleKind::kDict) return node.items;
    if (!IsCall(node, TorchGlobal::kOrderedDict, TorchGlobal::kOrderedDict)) return std::nullopt;
    // Python 2 gave OrderedDict a list of pairs.
    std::vector<uint32_t> items(node.items.begin() + 2, node.items.end());
    const PickleNode& arguments = nodes_[node.items[1]];
    if (arguments.items.empty()) return items;
    for (const uint32_t pair : nodes_[arguments.items[0]].items) {
      if (nodes_[pair].items.size() != 2) return std::nullopt;
      items.insert(items.end(), nodes_[pair].items.begin(), nodes_[pair].items.end());
    }
    return items;
  }

  // The state dict: what the pickle holds, or a member of it.
  std::vector<uint32_t> Members() const {
    const auto outer = Items(nodes_[torch_.pickle.root]);
    if (!outer) Fail(name_, ": it holds ", PickleKindName(nodes_[torch_.pickle.root].kind), ", expected a dict of tensors");
    for (size_t i = 0; i + 1 < outer->size(); i += 2) {
      const PickleNode& key = nodes_[(*outer)[i]];
      const bool named = std::find(std::begin(kStateDicts), std::end(kStateDicts), key.text) != std::end(kStateDicts);
      if (key.kind != PickleKind::kText || !named) continue;
      if (const auto inner = Items(nodes_[(*outer)[i + 1]])) return *inner;
    }
    return *outer;
  }

  // The arguments of a call of one of some functions. Errors: fewer of them than `least`.
  const std::vector<uint32_t>& Arguments(const PickleNode& call, size_t least) const {
    const std::vector<uint32_t>& arguments = nodes_[call.items[1]].items;
    if (arguments.size() < least) Fail(where_, ": ", arguments.size(), " arguments, expected ", least);
    return arguments;
  }

  StoredTensor Tensor(const PickleNode& node) {
    const PickleNode* call = &node;
    // A parameter is made of a tensor; a tensor with attributes of its own is made by a function that is an argument.
    for (int depth = 0; depth < 3; ++depth) {
      if (IsCall(*call, TorchGlobal::kParameter, TorchGlobal::kParameterWithState)) call = &nodes_[Arguments(*call, 1)[0]];
      if (IsCall(*call, TorchGlobal::kFromType, TorchGlobal::kFromType)) {
        const std::vector<uint32_t>& arguments = Arguments(*call, 4);
        if (nodes_[arguments[0]].kind != PickleKind::kGlobal || nodes_[arguments[2]].kind != PickleKind::kTuple) break;
        inner_.kind = PickleKind::kCall;
        inner_.items = {arguments[0], arguments[2]};
        call = &inner_;
      }
    }
    if (!IsCall(*call, TorchGlobal::kTensor, TorchGlobal::kTensorV3)) {
      Fail(where_, ": found ", PickleKindName(node.kind), ", expected a tensor; save the model's state_dict() alone");
    }
    return View(*call);
  }

  StoredTensor View(const PickleNode& call) {
    const std::vector<uint32_t>& arguments = Arguments(call, 4);
    TorchStorage storage = torch_.Storage(nodes_[arguments[0]], where_);
    if (IsCall(call, TorchGlobal::kTensorV3, TorchGlobal::kTensorV3)) {
      const PickleNode& type = nodes_[Arguments(call, 7)[6]];
      storage.Retype(TorchTypeOf(type, where_), where_);
    }
    const size_t metadata = IsCall(call, TorchGlobal::kTensorV3, TorchGlobal::kTensorV3) ? 7 : 6;
    if (arguments.size() > metadata && !nodes_[arguments[metadata]].items.empty()) {
      Fail(where_, ": a conjugated or negative view; save tensor.resolve_neg()");
    }
    Strides layout{Sizes(nodes_[arguments[2]], "shape"), Sizes(nodes_[arguments[3]], "strides")};
    const uint64_t offset = Size(nodes_[arguments[1]], "offset");
    if (layout.shape.size() != layout.strides.size() || layout.shape.size() > kMaxDimensions) {
      Fail(where_, ": shape ", ShapeText(layout.shape), " with strides ", ShapeText(layout.strides));
    }
    StoredTensor tensor{storage.dtype, layout.shape, nullptr, 1};
    bool row_major = true;
    uint64_t last = offset;  // the largest number of an element
    for (size_t d = layout.shape.size(); d-- > 0;) {
      uint64_t reach = 0;
      row_major = row_major && (layout.shape[d] <= 1 || layout.strides[d] == tensor.elements);
      if (__builtin_mul_overflow(tensor.elements, layout.shape[d], &tensor.elements) ||
          __builtin_mul_overflow(layout.strides[d], std::max<uint64_t>(layout.shape[d], 1) - 1, &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        Fail(where_, ": shape ", ShapeText(layout.shape), " with strides ", ShapeText(layout.strides), " overflows");
      }
    }
    // An element that several share would make work without bytes.
    if (tensor.elements > 0 && (last >= storage.elements || tensor.elements > storage.elements)) {
      Fail(where_, ": ", StoredTypeName(tensor.dtype), " ", ShapeText(layout.shape), " with strides ", ShapeText(layout.strides),
           " from element ", offset, " on does not fit its storage of ", storage.elements, " elements");
    }
    used_bytes_ += tensor.elements * ElementBytes(tensor.dtype);
    if (used_bytes_ / kMostUses > file_bytes_) Fail(name_, ": its tensors share the same bytes more than ", kMostUses, " times");
    static constexpr uint8_t kNothing = 0;
    tensor.data = tensor.elements == 0 ? &kNothing : storage.data + offset * ElementBytes(tensor.dtype);
    if (!row_major && tensor.elements > 0) tensor.strides = std::make_shared<const Strides>(std::move(layout));
    return tensor;
  }

  uint64_t Size(const PickleNode& node, const char* what) const {
    if (node.kind == PickleKind::kInteger && node.integer >= 0) return static_cast<uint64_t>(node.integer);
    Fail(where_, ": ", what, ": found ", PickleKindName(node.kind), ", expected integers of at least 0");
  }

  std::vector<uint64_t> Sizes(const PickleNode& node, const char* what) const {
    if (node.kind != PickleKind::kTuple || node.items.size() > kMaxDimensions) {
      Fail(where_, ": ", what, ": found ", PickleKindName(node.kind), ", expected a tuple of at most ", kMaxDimensions,
           " integers");
    }
    std::vector<uint64_t> sizes;
    for (const uint32_t item : node.items) sizes.push_back(Size(nodes_[item], what));
    return sizes;
  }

  const TorchPickle& torch_;
  const std::vector<PickleNode>& nodes_;
  const uint64_t file_bytes_;
  const std::string& name_;
  std::string where_;
  PickleNode inner_;
  uint64_t used_bytes_ = 0;
};

}  // namespace

std::map<std::string, StoredTensor> ParseTorchFile(const uint8_t* data, size_t size, const std::string& name) {
  const TorchPickle torch = ReadTorchPickle(data, size, name);
  return StateDict(torch, size, name).Tensors();
}

}  // namespace tarn::convert
