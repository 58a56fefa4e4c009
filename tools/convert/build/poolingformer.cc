#include "tools/convert/build/poolingformer.h"

#include "tools/convert/build/layers.h"

namespace tarn::convert {

using format::Slice;

Slice AddPoolingformer(GraphBuilder* builder, const std::string& prefix, const PoolingLevels& levels, Slice q, Slice k, Slice v,
                       Slice* level1) {
  constexpr char kSystem[] = "poolingformer";
  const format::Heads& heads = levels.heads;
  CacheAttention near;
  near.policy = CachePolicy::kWindow;
  near.scale = levels.scale;
  near.window = levels.window1;
  *level1 = AddNoncausalAttention(builder, prefix + "level1", kSystem, heads, near, q, k, v);

  CacheAttention far = near;
  far.policy = CachePolicy::kPooled;
  far.window = levels.window2;
  far.pool_kernel = levels.pool_kernel;
  far.pool_stride = levels.pool_stride;
  const uint32_t key_width = heads.heads() * heads.head_dim(), value_width = heads.heads() * heads.value_dim();
  const Slice qkv = builder->AddDense(
      prefix + "qkv2", prefix + "qkv2",
      {{prefix + "q2", key_width, false}, {prefix + "k2", key_width, false}, {prefix + "v2", value_width, false}}, *level1);
  const format::Heads all(heads.heads(), heads.heads(), heads.head_dim(), heads.value_dim());
  const Slice z = AddNoncausalAttention(builder, prefix + "level2", kSystem, all, far, Columns(qkv, 0, key_width),
                                        Columns(qkv, key_width, key_width), Columns(qkv, 2 * key_width, value_width));
  return AddSum(builder, prefix + "add", *level1, z);
}

}  // namespace tarn::convert
