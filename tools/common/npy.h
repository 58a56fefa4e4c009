// NumPy's .npy files: what an evaluation reads (token ids) and writes (logits).
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef TARN_TOOLS_COMMON_NPY_H_
#define TARN_TOOLS_COMMON_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tarn::tools {

// The ids of a one-dimensional little-endian int32 array, format version 1 or 2. `name` is for messages.
// Throws Failure, which says what was found and what is wanted.
std::vector<int32_t> ParseNpyTokens(const std::string& bytes, const std::string& name);

// The header of a float32 array [rows, columns] in C order, version 1; the values follow it.
std::string NpyHeader(uint64_t rows, uint64_t columns);

}  // namespace tarn::tools

#endif  // TARN_TOOLS_COMMON_NPY_H_
