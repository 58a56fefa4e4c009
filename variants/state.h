// What a state of an op must be, for one sequence.
#ifndef TARN_VARIANTS_STATE_H_
#define TARN_VARIANTS_STATE_H_

#include <cstdint>

namespace tarn {

// What its elements may be stored as: F32 always.
enum class StoredAs : uint8_t { kF32, kF32OrF16, kF32OrF16OrI8 };

struct StateInfo {
  const char* name;
  uint32_t rank;
  uint64_t shape[3];
  StoredAs stored_as;
};

}  // namespace tarn

#endif  // TARN_VARIANTS_STATE_H_
