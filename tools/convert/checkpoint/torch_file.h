// Checkpoints as torch.save() writes them: a pickled dictionary of tensors, and the storages that these are views of.
//
//   a zip archive    NAME/data.pkl, NAME/data/KEY for each storage, NAME/byteorder ("little")
//   before 1.6       five pickles: a magic number, the protocol, sizes of types, the dictionary, the keys of the storages; then for
//                    each key the number of its elements (8 bytes) and its bytes
//
// The pickle is read as data (pickle.h): it can name the functions of PyTorch that make tensors, and nothing else.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_TORCH_FILE_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_TORCH_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tools/convert/checkpoint/safetensors.h"

namespace tarn::convert {

// The tensors of a state dict, or of one inside a dictionary under a name that it commonly has there ("state_dict", "model").
// `name` begins every message. The result borrows `data`.
// Errors: as ReadZip and ReadPickle; something that is not a tensor; a type, a shape, an offset or strides that do not fit the
// storage; a storage that is missing or has another size; a tensor twice; a TorchScript or tar archive.
std::map<std::string, StoredTensor> ParseTorchFile(const uint8_t* data, size_t size, const std::string& name);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_TORCH_FILE_H_
