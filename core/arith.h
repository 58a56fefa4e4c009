// Sizes: alignment and arithmetic that notices overflow. Numbers that come from a file go through these.
#ifndef TARN_CORE_ARITH_H_
#define TARN_CORE_ARITH_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// Every buffer of the runtime starts at a multiple of this: a cache line, and the widest vector.
constexpr size_t kAlignment = 64;

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment = kAlignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// False if the result does not fit; `*result` is then unspecified.
inline bool CheckedMul(uint64_t a, uint64_t b, uint64_t* result) { return !__builtin_mul_overflow(a, b, result); }
inline bool CheckedAdd(uint64_t a, uint64_t b, uint64_t* result) { return !__builtin_add_overflow(a, b, result); }

// The same for estimates: UINT64_MAX stands for everything that does not fit.
inline uint64_t SaturatingMul(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  return CheckedMul(a, b, &result) ? result : UINT64_MAX;
}
inline uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  return CheckedAdd(a, b, &result) ? result : UINT64_MAX;
}

}  // namespace tarn

#endif  // TARN_CORE_ARITH_H_
