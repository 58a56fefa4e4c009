// Poolingformer: a window of keys, and behind it a wider window of pooled ones.
#include <string>

#include "tools/convert/attention/cache_attention.h"
#include "tools/convert/build/poolingformer.h"

namespace tarn::convert {

AttentionOp ParsePoolingformer(Fields* fields, const AttentionContext& context) {
  PoolingLevels levels{};
  levels.heads = context.heads;
  levels.window1 = fields->Size("window1");
  levels.window2 = fields->Size("window2");
  levels.pool_kernel = fields->Size("pool_kernel");
  levels.pool_stride = fields->Size("pool_stride");
  CheckPools(fields, levels.pool_kernel, levels.pool_stride);
  fields->Fix("pooling", "mean");
  fields->Fix("tail", "truncate");
  levels.scale = fields->Number("scale", DefaultScale(context.heads));

  AttentionOp op;
  op.composed.emplace();
  op.composed->heads = [levels](GraphBuilder* builder, const std::string& prefix, format::Slice q, format::Slice k,
                                format::Slice v) {
    format::Slice level1;
    return AddPoolingformer(builder, prefix, levels, q, k, v, &level1);
  };
  return op;
}

}  // namespace tarn::convert
