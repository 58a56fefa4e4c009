// The scale of a block of int4, int3 or int2 weights whose errors are made good within the block.
#ifndef TARN_TOOLS_CONVERT_CALIBRATE_BLOCK_SCALE_H_
#define TARN_TOOLS_CONVERT_CALIBRATE_BLOCK_SCALE_H_

#include <cstddef>
#include <cstdint>

#include "tools/convert/graph/quantize.h"

namespace tarn::convert {

// Of the scales that QuantizeBlock() tries, the one for which rounding `weights` [kScaleBlock] from left to right costs least: an
// error d of weight i takes d factor[i][j] from the weights j behind it and costs (d spread[i])^2. `factor`: rows of `stride`
// elements. A block of zeros has 1, or the smallest scale if 0 is no level. A normal bf16, of int3 of either
// sign, else > 0.
float BestBlockScale(const Levels& levels, const float* weights, const float* factor, size_t stride, const float* spread);

// The normal bf16 > 0 nearest to `scale`.
float NearestScale(double scale);
// Its bits.
uint16_t Bf16OfScale(float scale);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_CALIBRATE_BLOCK_SCALE_H_
