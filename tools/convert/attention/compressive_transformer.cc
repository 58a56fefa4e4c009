// Compressive Transformer: softmax over the current segment, a memory of the tokens before it, and a compressed memory of the means
// of those that have left it.
//
// The paper compresses hidden rows and projects them again. Rows of keys and values are kept here: projections are linear, so the
// mean of projected rows is the projection of the mean. What breaks that is refused: rope, after which a key depends on where its
// token stood, and a bias where rows of zeros are averaged in, since a projected row of zeros would be the bias.
#include <string>

#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {

AttentionOp ParseCompressiveTransformer(Fields* fields, const AttentionContext& context) {
  const CacheAttention cache = ParseCachePolicy(fields, context, CachePolicy::kCompressive);
  fields->Fix("compression", "mean");
  fields->Fix("pad", "left_zero");
  fields->Fix("mask_empty", true);
  CheckMeansOfKeys(fields, context, cache, "system");
  return MakeCacheAttention(cache, context, "compressive_transformer");
}

void CheckMeansOfKeys(Fields* fields, const AttentionContext& context, const CacheAttention& cache, const char* key) {
  if (context.rope) {
    fields->FailAt(
        key, ValueText(*fields->Find(key)) + " with position_embedding = \"rope\": means of keys need keys without positions");
  }
  if (cache.compression_ratio > cache.segment_len) {
    fields->FailAt("compression_ratio", std::to_string(cache.compression_ratio) + " is above segment_len = " +
                                            std::to_string(cache.segment_len) + ": compressed rows would be mostly padding");
  }
  // A full segment leaves the memory at a time, the first time the part of it that the memory has no room for.
  const bool padded = cache.segment_len % cache.compression_ratio != 0 || cache.mem_len % cache.compression_ratio != 0;
  if (context.kv_bias && padded) {
    fields->FailAt("compression_ratio",
                   std::to_string(cache.compression_ratio) +
                       " with attention_bias of k or v must divide segment_len = " + std::to_string(cache.segment_len) +
                       " and mem_len = " + std::to_string(cache.mem_len) + ": rows of zeros would have to be projected");
  }
}

}  // namespace tarn::convert
