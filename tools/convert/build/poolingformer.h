// The two levels of Poolingformer (Zhang et al. 2021; MATH 1.9.6), as a graph of ordinary ops.
#ifndef TARN_TOOLS_CONVERT_BUILD_POOLINGFORMER_H_
#define TARN_TOOLS_CONVERT_BUILD_POOLINGFORMER_H_

#include <string>

#include "tools/convert/build/graph_builder.h"

namespace tarn::convert {

struct PoolingLevels {
  format::Heads heads;
  float scale;
  uint32_t window1;  // keys at a distance of at most half of it
  uint32_t window2;  // pooled rows that touch such a distance
  uint32_t pool_kernel;
  uint32_t pool_stride;
};

// y: attention of q, k, v within the first window. Returns y + z, z: attention of projections of y (q2, k2, v2, without bias, a key
// head per query head) to means of its neighbours within the second window. Sets `*level1` to y.
format::Slice AddPoolingformer(GraphBuilder* builder, const std::string& prefix, const PoolingLevels& levels, format::Slice q,
                               format::Slice k, format::Slice v, format::Slice* level1);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_POOLINGFORMER_H_
