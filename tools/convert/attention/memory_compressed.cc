// Memory-compressed attention in its streaming form: softmax over blocks of compression_factor tokens, each made one row by a
// convolution that keys and values share, and over a learned row that is always visible.
#include <cmath>
#include <string>

#include "tools/convert/attention/cache_attention.h"

namespace tarn::convert {
namespace {

// scale_dim: the width whose root the logits are divided by; the model's?
constexpr Choice<bool> kScaleDims[] = {{"head", false}, {"model", true}};

// conv_weight [Hkv*d, d, factor] -> [Hkv, d, factor*d]: of an output channel, the taps one after the other.
AttentionTensor ConvWeight(const format::Heads& heads, uint32_t factor) {
  const uint32_t kv_heads = heads.kv_heads(), d = heads.head_dim();
  const auto fold = [=](const std::vector<std::vector<float>>& parts) {
    std::vector<float> out(parts[0].size());
    for (size_t row = 0; row < size_t{kv_heads} * d; ++row) {
      for (size_t channel = 0; channel < d; ++channel) {
        for (size_t tap = 0; tap < factor; ++tap) {
          out[(row * factor + tap) * d + channel] = parts[0][(row * d + channel) * factor + tap];
        }
      }
    }
    return out;
  };
  return {"conv_weight", {kv_heads, d, factor * d}, {{"conv_weight", {kv_heads * d, d, factor}, Init::kConv}}, fold};
}

AttentionTensor Row(const char* name, const format::Heads& heads, const std::vector<uint32_t>& stored_shape, Init init) {
  return {name, {heads.kv_heads(), heads.head_dim()}, {{name, stored_shape, init}}, nullptr};
}

}  // namespace

AttentionOp ParseMemoryCompressed(Fields* fields, const AttentionContext& context) {
  const format::Heads heads = context.heads;
  if (heads.value_dim() != heads.head_dim()) {
    fields->FailAt("system", "\"memory_compressed\" has one convolution for keys and values: value_head_dim = " +
                                 std::to_string(heads.value_dim()) + " must be head_dim = " + std::to_string(heads.head_dim()));
  }
  CacheAttention cache;
  cache.policy = CachePolicy::kMemoryCompressed;
  cache.factor = fields->Size("compression_factor");
  cache.capacity = fields->Size("max_context");
  if (cache.factor < 2) fields->FailAt("compression_factor", "1 compresses nothing");
  if (cache.factor > cache.capacity) {
    fields->FailAt("compression_factor", std::to_string(cache.factor) + " is above max_context = " +
                                             std::to_string(cache.capacity) + ": no block would ever be complete");
  }
  if (uint64_t{cache.factor} * heads.head_dim() > Fields::kMaxSize) {
    fields->FailAt("compression_factor", std::to_string(cache.factor) + " times head_dim is too large");
  }
  fields->Fix("pad", "none");
  fields->Fix("mask_empty", true);
  cache.null_kv = fields->Bool("null_kv", true);
  const bool model_width = fields->OneOf<bool>("scale_dim", kScaleDims, true);
  const double width = model_width ? context.hidden_size : heads.head_dim();
  cache.scale = fields->Number("scale", static_cast<float>(1 / std::sqrt(width)));

  AttentionOp op = MakeCacheAttention(cache, context, "memory_compressed");
  const std::vector<uint32_t> row = {heads.kv_heads(), heads.head_dim()};
  op.tensors.push_back(ConvWeight(heads, cache.factor));
  op.tensors.push_back(Row("conv_bias", heads, {heads.kv_heads() * heads.head_dim()}, Init::kZero));
  if (cache.null_kv) {
    op.tensors.push_back(Row("null_k", heads, row, Init::kLinear));
    op.tensors.push_back(Row("null_v", heads, row, Init::kLinear));
  }
  return op;
}

}  // namespace tarn::convert
