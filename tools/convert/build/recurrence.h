// Token mixers of several ops whose memory is a few rows or one: gated short convolutions, and recurrences with gates of v.
#ifndef TARN_TOOLS_CONVERT_BUILD_RECURRENCE_H_
#define TARN_TOOLS_CONVERT_BUILD_RECURRENCE_H_

#include <cstdint>
#include <string>

#include "tools/convert/build/layers.h"
#include "variants/recurrence.h"

namespace tarn::convert {

// Of a dense layer whose weight is block-diagonal: `tensor` [blocks, width / blocks, width / blocks], the columns of a block being
// outputs, and its bias [width].
format::Slice AddBlockDense(GraphBuilder* builder, const std::string& name, const std::string& tensor, uint32_t blocks,
                            format::Slice x);

// y = q * conv(k * v): a gated short convolution, as in LFM2. Its taps are those of "conv".
format::Slice AddShortConv(GraphBuilder* builder, const std::string& prefix, uint32_t taps, bool bias, format::Slice q,
                           format::Slice k, format::Slice v);

// RG-LRU (Griffin): h_t = a_t h_(t-1) + sqrt(1 - a_t^2) sigmoid(i_proj v) v, log a_t = -rate sigmoid(g_proj v), where rate is
// rate_scale * softplus(rate_logit). Its projections are block-diagonal.
struct RgLru {
  uint32_t blocks;
  float rate_scale;
};
format::Slice AddRgLru(GraphBuilder* builder, const std::string& prefix, const RgLru& recurrence, format::Slice v);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_RECURRENCE_H_
