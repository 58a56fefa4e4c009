// Shapes of what an op declares.
#ifndef TARN_VARIANTS_SHAPE_H_
#define TARN_VARIANTS_SHAPE_H_

#include <cstdint>

namespace tarn {

struct HeadSizes {
  uint64_t kv_heads;   // Hkv
  uint64_t key_dim;    // d
  uint64_t value_dim;  // dv
};

struct TensorShape {
  uint32_t rank;
  uint64_t sizes[3];
};

}  // namespace tarn

#endif  // TARN_VARIANTS_SHAPE_H_
