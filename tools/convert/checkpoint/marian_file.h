// Model files of Marian: .npz (npz.h), or its own .bin:
//
//   u64, u64         the version 1, the number n of items
//   n * 4 * u64      of each item: bytes of its name, type, dimensions, bytes of its data
//   the names        each with a zero behind it
//   the shapes       i32 for each dimension
//   u64              bytes of padding that follow
//   the data         of one item after the other
//
// A type is its class and the bytes of an element: 0x404 is F32. Matrices of intgemm's 8 bits are stored transposed, apart from
// embeddings; behind their elements stands a float by which they were multiplied. The item "special:model.yml" holds the options of
// the model.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_MARIAN_FILE_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_MARIAN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tools/convert/checkpoint/safetensors.h"

namespace tarn::convert {

// The model in a folder: model.npz, or the only .npz or .bin of Marian. Without the folder; "": there is none. Errors: there are
// several.
std::string FindMarianFile(const std::string& folder);

// The items but for those that scale activations. `name` begins every message. The result borrows `data`.
// Errors: as ParseNpz; a version that is not 1; a name, shape or size that does not fit; a type for one kind of processor; an item
// that is there twice.
std::map<std::string, StoredTensor> ParseMarianFile(const uint8_t* data, size_t size, const std::string& name);

// Takes the options out of a model's items: as a config.json of model_type "marian_nmt", whose fields are they. Errors: there are
// none, or YAML of another kind than Marian writes.
std::string TakeMarianOptions(std::map<std::string, StoredTensor>* items, const std::string& name);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_MARIAN_FILE_H_
