// Softmax attention over a bounded cache of keys and values.
#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {

AttentionOp ParseSoftmax(Fields* fields, const AttentionContext& context) {
  CacheAttention cache;
  cache.capacity = fields->Size("max_context");
  fields->Fix("mask_empty", true);
  cache.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeCacheAttention(cache, context, "softmax", {{"", cache.capacity}});
}

}  // namespace tarn::convert
