// Arrays of NumPy: a .npz file is a zip archive whose entries NAME.npy are arrays.
//
//   8 bytes      "\x93NUMPY", the version 1.0, 2.0 or 3.0
//   2 or 4 bytes length of the header (2 bytes in version 1.0)
//   the header   a dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//   the rest     the elements, row-major
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_NPZ_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_NPZ_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tools/convert/checkpoint/safetensors.h"

namespace tarn::convert {

// The arrays by their names without ".npy". `name` begins every message. The result borrows `data`.
// Errors: as ReadZip; an entry that is compressed, or is no array; a header with other fields than these three; a type that
// StoredType does not have; columns that lie one after the other; a shape that does not fit the bytes of the entry.
std::map<std::string, StoredTensor> ParseNpz(const uint8_t* data, size_t size, const std::string& name);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_NPZ_H_
