#include "runtime/ops/attention/cache/memory_compression.h"

#include "runtime/ops/attention/row_blocks.h"

namespace tarn {

Result<MemoryCompression> MemoryCompression::Read(const PrepareContext& context, const format::CacheAttention& table,
                                                  const Heads& heads) {
  MemoryCompression compression;
  TARN_RETURN_IF_ERROR(ExpectAtLeast("factor", table.factor(), 2));
  TARN_RETURN_IF_ERROR(ExpectAtLeast("capacity", table.capacity(), table.factor()));
  if (heads.value_dim() != heads.key_dim()) {
    return Error(TARN_BAD_FORMAT, "value_dim %zu: keys and values share a convolution, head_dim %zu wanted", heads.value_dim(),
                 heads.key_dim());
  }
  compression.factor = table.factor();
  compression.dim = heads.key_dim();
  const uint64_t kv_heads = heads.kv_heads(), d = heads.key_dim(), factor = table.factor();
  TARN_ASSIGN_OR_RETURN(compression.weight, context.ExpectTensor(0, "conv_weight", {kv_heads, d, factor * d}));
  TARN_ASSIGN_OR_RETURN(compression.bias, context.ExpectTensor(1, "conv_bias", {kv_heads, d}));
  if (table.null_kv()) {
    TARN_ASSIGN_OR_RETURN(compression.null_k, context.ExpectTensor(2, "null_k", {kv_heads, d}));
    TARN_ASSIGN_OR_RETURN(compression.null_v, context.ExpectTensor(3, "null_v", {kv_heads, d}));
  }
  return compression;
}

void MemoryCompression::Convolve(const Kernels& kernels, size_t kv_head, size_t rows, const float* x, float* y) const {
  const size_t inputs = factor * dim;
  kernels.dense_f32(rows, inputs, dim, x, inputs, weight + kv_head * dim * inputs, bias + kv_head * dim, y, dim);
}

CacheBlock MemoryCompression::NullRow(size_t kv_head) const {
  return FloatBlock(1, null_k + kv_head * dim, dim, null_v + kv_head * dim, dim);
}

}  // namespace tarn
