// Compressive Transformer: softmax over the current segment, a memory of the tokens before it, and a compressed memory of the means
// or convolutions of those that have left it.
//
// The paper compresses hidden rows and projects them again. Rows of keys and values are kept here: projections are linear, so the
// mean of projected rows is the projection of the mean. What breaks that is refused: rope, after which a key depends on where its
// token stood, and a bias where rows of zeros are averaged in, since a projected row of zeros would be the bias. Of a convolution
// the checkpoint has the products of its taps with both projections, and a bias that is added once, so that rows of zeros add
// nothing.
#include <algorithm>
#include <string>

#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {

AttentionOp ParseCompressiveTransformer(Fields* fields, const AttentionContext& context) {
  const CacheAttention cache = ParseCachePolicy(fields, context, CachePolicy::kCompressive);
  fields->Fix("mask_empty", true);
  CheckCompression(fields, context, cache, "system");
  AttentionOp op = MakeCacheAttention(cache, context, "compressive_transformer");
  AddCompression(cache, context, &op);
  return op;
}

void AddCompression(const CacheAttention& cache, const AttentionContext& context, AttentionOp* op) {
  if (cache.compression != Compression::kMean || cache.pad != CompressionPad::kLeftZero) op->features.push_back("compression");
  if (!cache.has_conv()) return;
  const uint32_t kv_heads = context.heads.kv_heads(), taps = cache.compression_ratio * kv_heads;
  const auto add = [&](const char* logit, const char* projection, const char* bias, uint32_t dim) {
    op->logits.push_back(
        {logit, projection, taps * dim, /*bias=*/false, /*with_qkv=*/false, /*shared=*/false, Init::kLinear, Init::kZero});
    op->tensors.push_back({bias, {kv_heads, dim}, {{bias, {kv_heads * dim}, Init::kZero}}, nullptr});
  };
  add("k_compress", "k_compress_proj", "k_compress_bias", context.heads.head_dim());
  add("v_compress", "v_compress_proj", "v_compress_bias", context.heads.value_dim());
}

void CheckCompression(Fields* fields, const AttentionContext& context, const CacheAttention& cache, const char* key) {
  if (context.rope) {
    fields->FailAt(key, ValueText(*fields->Find(key)) +
                            " with position_embedding = \"rope\": compressed keys have no position to be turned by");
  }
  if (cache.has_conv() &&
      uint64_t{cache.compression_ratio} * context.heads.kv_heads() * std::max(context.heads.head_dim(), context.heads.value_dim()) >
          Fields::kMaxSize) {
    fields->FailAt("compression_ratio",
                   std::to_string(cache.compression_ratio) + " times the width of keys or values is too large");
  }
  if (cache.compression_ratio > cache.segment_len) {
    fields->FailAt("compression_ratio", std::to_string(cache.compression_ratio) + " is above segment_len = " +
                                            std::to_string(cache.segment_len) + ": compressed rows would be mostly padding");
  }
  // A full segment leaves the memory at a time, the first time the part of it that the memory has no room for.
  const bool padded = cache.segment_len % cache.compression_ratio != 0 || cache.mem_len % cache.compression_ratio != 0;
  if (context.kv_bias && padded && !cache.has_conv()) {
    fields->FailAt("compression_ratio",
                   std::to_string(cache.compression_ratio) +
                       " with attention_bias of k or v must divide segment_len = " + std::to_string(cache.segment_len) +
                       " and mem_len = " + std::to_string(cache.mem_len) + ": rows of zeros would have to be projected");
  }
}

}  // namespace tarn::convert
