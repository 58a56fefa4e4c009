// Attention of the Luna encoder (Ma et al. 2021; MATH 1.9.5), as a graph of ordinary ops. Tensors are named as in the authors'
// code.
#ifndef TARN_TOOLS_CONVERT_BUILD_LUNA_H_
#define TARN_TOOLS_CONVERT_BUILD_LUNA_H_

#include <string>

#include "tools/convert/build/graph_builder.h"

namespace tarn::convert {

struct LunaBlock {
  uint32_t num_heads;
  uint32_t num_pack_heads;
  bool tie_kv;  // keys and values are one projection: pc_proj, c_proj; else pk_proj, pv_proj, k_proj, v_proj
  float scale;  // of unpacking
  float pack_scale;
  uint32_t max_rows;  // of the context; a longer one is an error
};

// Pack: p' = Attention(pq_proj pack, context). Unpack: y = out_proj Attention(q_proj x, p'). Returns y, sets `*packed` to p'; the
// residuals and norms of both are the caller's.
format::Slice AddLunaAttention(GraphBuilder* builder, const std::string& prefix, const LunaBlock& block, format::Slice x,
                               format::Slice pack, format::Slice context, format::Slice* packed);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_BUILD_LUNA_H_
