// The two containers of torch.save(): where the pickle of a checkpoint and its storages lie.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_TORCH_STORAGES_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_TORCH_STORAGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tools/convert/checkpoint/pickle.h"
#include "tools/convert/checkpoint/safetensors.h"

namespace tarn::convert {

// What a checkpoint may name. Those that make dictionaries and tensors; behind them the types of storages and of elements, in the
// order of a table.
enum class TorchGlobal : uint8_t {
  kOrderedDict,
  kTensor,
  kTensorV2,
  kTensorV3,
  kParameter,
  kParameterWithState,
  kFromType,
  kTensorClass,
  kParameterClass,
  kFirstType,
};

// Elements one after the other, which tensors are views of.
struct TorchStorage {
  StoredType dtype;
  uint64_t elements;
  const uint8_t* data;  // of any alignment

  // Sees its bytes as elements of another type. Errors: `where` and a size that these do not divide.
  void Retype(StoredType type, const std::string& where);
};

struct TorchPickle {
  Pickle pickle;  // the dictionary
  struct Bytes {
    const uint8_t* data;
    uint64_t bytes;
  };
  std::map<std::string, Bytes, std::less<>> storages;  // by their keys

  // The storage that a node stands for. Errors: `where`, and a node that is none; a key that there is not; another size.
  TorchStorage Storage(const PickleNode& node, const std::string& where) const;
};

// The type of elements that a global stands for. Errors: `where`, and another global.
StoredType TorchTypeOf(const PickleNode& global, const std::string& where);

// Errors: as ParseTorchFile, of all but the tensors.
TorchPickle ReadTorchPickle(const uint8_t* data, size_t size, const std::string& name);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_TORCH_STORAGES_H_
