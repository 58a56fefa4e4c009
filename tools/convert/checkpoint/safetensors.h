// The safetensors container, read strictly.
//
//   8 bytes  little-endian length n of the header
//   n bytes  JSON object: tensor name -> {dtype, shape, data_offsets [begin, end)}, and "__metadata__": {string: string}
//   the rest data, row-major; tensors fill it without holes and without overlap
//
// Nothing of the data is read here: a checkpoint that was mapped stays on disk until its tensors are converted.
#ifndef TARN_TOOLS_CONVERT_CHECKPOINT_SAFETENSORS_H_
#define TARN_TOOLS_CONVERT_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tarn::convert {

enum class StoredType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kQuantizedI8,
  kI32,
  kF64,
  kI64,
  kU64,
  kU32,
  kI16,
  kU16,
  kI8,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2
};

// Weights have these; files hold tensors of the others, which nobody reads. kQuantizedI8: of a file that says their scale.
inline bool IsFloating(StoredType dtype) { return dtype <= StoredType::kQuantizedI8; }

// How far apart neighbours along each dimension lie, in elements.
struct Strides {
  std::vector<uint64_t> shape, strides;
};

// A tensor as a file holds it, or a part of it, or its transposed matrix.
struct StoredTensor {
  StoredType dtype;
  std::vector<uint64_t> shape;
  const uint8_t* data;  // of any alignment; borrowed from the bytes that were parsed; nullptr: zeros
  uint64_t elements;
  uint64_t first = 0;          // of the elements at `data`
  uint64_t column_stride = 0;  // 0: row-major; else element [r, c] of a matrix is number first + r + c * column_stride
  std::shared_ptr<const std::vector<uint32_t>> row_order =
      nullptr;                 // row r is row (*row_order)[r] of what is at `data`; heads may stand before rows in `shape`
  float scale = 1, added = 0;  // an element x becomes scale * x + added
  std::shared_ptr<const StoredTensor> added_row = nullptr;  // its elements are added, over and over; nullptr: none
  std::shared_ptr<const Strides> strides = nullptr;  // where the elements at `data` lie; nullptr: one after the other, row-major
  uint64_t appended = 0;                             // the last elements, which are not at `data`:
  float appended_value = 0;                          // each is this number
};

struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, StoredTensor> tensors;
};

// `name` begins every message. The result borrows `data`.
// Errors: a truncated or oversized header, JSON that is none, a missing, unknown or misformed field, an unknown dtype, offsets that
// overflow, leave the data, overlap, leave a hole, or do not fit shape and dtype; a name twice.
Safetensors ParseSafetensors(const uint8_t* data, size_t size, const std::string& name);

const char* StoredTypeName(StoredType dtype);
uint64_t ElementBytes(StoredType dtype);

// Elements [first, first + count) of a floating tensor as f32, exactly. The dtype IsFloating, the range lies inside the tensor.
void ReadAsF32(const StoredTensor& tensor, uint64_t first, uint64_t count, float* out);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CHECKPOINT_SAFETENSORS_H_
