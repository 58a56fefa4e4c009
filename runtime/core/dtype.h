// Element types. The words are those of XNNPACK's kernels and of the file format.
#ifndef TARN_RUNTIME_CORE_DTYPE_H_
#define TARN_RUNTIME_CORE_DTYPE_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// Numbers are those of schema/tarn.fbs.
enum class DType : uint8_t { kF32 = 0, kF16 = 1, kI8 = 2, kI32 = 3, kI64 = 4 };

constexpr bool IsDType(uint8_t number) { return number <= static_cast<uint8_t>(DType::kI64); }

constexpr size_t DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 1;
    case DType::kF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 8;
  }
  return 0;
}

constexpr const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kI8:
      return "i8";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
  }
  return "?";
}

}  // namespace tarn

#endif  // TARN_RUNTIME_CORE_DTYPE_H_
