// What a model may ask of the ops, at most. The converter refuses more when it writes a file, the runtime when it reads one.
#ifndef TARN_VARIANTS_LIMITS_H_
#define TARN_VARIANTS_LIMITS_H_

#include <cstdint>

namespace tarn {

constexpr uint32_t kMaxHeads = 1u << 14;  // heads, and the elements of one
constexpr uint32_t kMaxFeatures = 1u << 20;
constexpr uint32_t kMaxNu = 64;           // of DPFP
constexpr uint32_t kMaxSlots = 1u << 16;  // slots, global positions, clusters
constexpr uint32_t kMaxRows =
    1u << 30;  // of a cache or a schedule, and tokens that one counts: sums of positions stay far from any limit
constexpr uint32_t kMaxClusterIterations = 1000;
constexpr uint32_t kMinConvTaps = 2, kMaxConvTaps = 8;  // of a causal convolution
constexpr uint32_t kMaxInt8Inputs = 65793;  // of a dense layer: 255 * 128 * inputs < 2^31, so that no sum of products overflows

}  // namespace tarn

#endif  // TARN_VARIANTS_LIMITS_H_
