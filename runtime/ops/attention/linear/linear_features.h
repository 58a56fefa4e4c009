// From rows of q and k to their features: the constants of a linear op, and the way through scale, norm and feature map.
#ifndef TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_FEATURES_H_
#define TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_FEATURES_H_

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/linear/linear_attributes.h"

namespace tarn {

class LinearFeatures {
 public:
  // Takes the op's tensors from the first on: projection and feature_bias, those of q where it has its own, sigma. Errors:
  // TARN_BAD_FORMAT.
  static Result<LinearFeatures> Read(const PrepareContext& context, const LinearAttributes& attributes, const Heads& heads);
  // How many tensors that are.
  static uint32_t TensorCount(const LinearAttributes& attributes) {
    const int of_a_map = attributes.has_projection() + attributes.map().bias;
    return static_cast<uint32_t>(of_a_map * (attributes.own_q_map ? 2 : 1) + attributes.key_norm_sigma);
  }

  size_t size() const { return size_; }  // M

  // Rows of q, or of k, normalised and scaled, to contiguous rows of y.
  void NormalizeQueries(const Kernels& kernels, size_t rows, const float* x, size_t x_stride, float* y) const {
    Normalize(kernels, rows, x, x_stride, a_.q_scale(), a_.q_eps(), y);
  }
  void NormalizeKeys(const Kernels& kernels, size_t rows, const float* x, size_t x_stride, float* y) const {
    Normalize(kernels, rows, x, x_stride, a_.k_scale(), a_.k_eps(), y);
  }
  // phi [queries + keys, M] of such rows of a key/value head: first `queries` rows of q, then `keys` rows of k. `log_weight`
  // [queries + keys] is written where the map leaves one, as FeatureArgs has it.
  void Map(const Kernels& kernels, size_t kv_head, size_t queries, size_t keys, const float* x, float* phi,
           float* log_weight) const;
  // Sets log_weight [rows] of such rows of keys to what `key_norm_weight` wants, where it does.
  void WeighKeys(const Kernels& kernels, size_t kv_head, size_t rows, const float* x, float* log_weight) const;

 private:
  struct Weights {
    const float* projection = nullptr;  // [kv_heads, d, D]
    const float* bias = nullptr;        // [kv_heads, D]
  };

  void Normalize(const Kernels& kernels, size_t rows, const float* x, size_t x_stride, float scale, float eps, float* y) const;
  Status ReadWeights(const PrepareContext& context, uint64_t kv_heads, uint32_t* next, Weights* weights) const;
  void MapRows(const Kernels& kernels, const Weights& weights, size_t kv_head, size_t rows, const float* x, float* phi,
               float* log_weight) const;

  LinearAttributes a_{};
  size_t key_dim_ = 0;
  size_t size_ = 0;
  Weights of_keys_, of_queries_;
  const float* sigma_ = nullptr;  // [kv_heads, d]
};

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_FEATURES_H_
