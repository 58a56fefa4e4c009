#include "runtime/ops/attention/cache/memory_compression.h"

#include "runtime/ops/attention/row_blocks.h"

namespace tarn {

MemoryCompression MemoryCompression::Of(const CacheVariant& variant) {
  MemoryCompression compression;
  compression.factor = variant.attributes.factor;
  compression.dim = variant.heads.key_dim();
  compression.weight = variant.tensors[0];
  compression.bias = variant.tensors[1];
  compression.null_k = variant.tensors[2];
  compression.null_v = variant.tensors[3];
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
