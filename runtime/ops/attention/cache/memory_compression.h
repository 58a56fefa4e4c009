// The parameters of memory-compressed attention (Liu et al. 2018; MATH 1.9.3): one convolution, of stride and width `factor`, that
// makes a row of `factor` keys and one of `factor` values, and perhaps a learned row that is visible to all.
#ifndef TARN_RUNTIME_OPS_ATTENTION_CACHE_MEMORY_COMPRESSION_H_
#define TARN_RUNTIME_OPS_ATTENTION_CACHE_MEMORY_COMPRESSION_H_

#include "runtime/ops/attention/cache/cache_attributes.h"

namespace tarn {

struct MemoryCompression {
  static MemoryCompression Of(const CacheVariant& variant);

  // y[r] = b + W x[r] for one key/value head; x [rows, factor*d]: the tokens of a block side by side; y [rows, d].
  void Convolve(const Kernels& kernels, size_t kv_head, size_t rows, const float* x, float* y) const;
  bool has_null_row() const { return null_k != nullptr; }
  CacheBlock NullRow(size_t kv_head) const;

  size_t factor = 0;
  size_t dim = 0;                 // d
  const float* weight = nullptr;  // [Hkv, d, factor*d]
  const float* bias = nullptr;    // [Hkv, d]
  const float* null_k = nullptr;  // [Hkv, d], or nullptr
  const float* null_v = nullptr;  // [Hkv, d], or nullptr
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_CACHE_MEMORY_COMPRESSION_H_
