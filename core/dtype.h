// Element types. The words are those of XNNPACK's kernels and of the file format.
#ifndef TARN_CORE_DTYPE_H_
#define TARN_CORE_DTYPE_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// Numbers are those of schema/tarn.fbs.
enum class DType : uint8_t { kF32 = 0, kF16 = 1, kI8 = 2, kI32 = 3, kI64 = 4, kI4 = 5, kBF16 = 6, kI3 = 7, kI2 = 8 };

// Elements of a row of an I4, I3 or I2 tensor that share a scale.
constexpr uint32_t kScaleBlock = 32;

constexpr bool IsDType(uint8_t number) { return number <= static_cast<uint8_t>(DType::kI2); }

// Whose rows have a scale per block.
constexpr bool IsBlockwise(DType dtype) { return dtype == DType::kI4 || dtype == DType::kI3 || dtype == DType::kI2; }

constexpr uint32_t DTypeBits(DType dtype) {
  switch (dtype) {
    case DType::kI2:
      return 2;
    case DType::kI3:
      return 3;
    case DType::kI4:
      return 4;
    case DType::kI8:
      return 8;
    case DType::kF16:
    case DType::kBF16:
      return 16;
    case DType::kF32:
    case DType::kI32:
      return 32;
    case DType::kI64:
      return 64;
  }
  return 0;
}

// Bytes of `elements` of them, the last one filled up.
constexpr uint64_t DataBytes(DType dtype, uint64_t elements) { return (elements * DTypeBits(dtype) + 7) / 8; }

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
    case DType::kI4:
      return "i4";
    case DType::kBF16:
      return "bf16";
    case DType::kI3:
      return "i3";
    case DType::kI2:
      return "i2";
  }
  return "?";
}

}  // namespace tarn

#endif  // TARN_CORE_DTYPE_H_
