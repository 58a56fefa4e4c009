// Softmax attention over a bounded cache of keys and values.
#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {

AttentionOp ParseSoftmax(Fields* fields, const AttentionContext& context) {
  fields->Fix("mask_empty", true);
  return MakeCacheAttention(ParseCachePolicy(fields, context, CachePolicy::kFull), context, "softmax");
}

}  // namespace tarn::convert
