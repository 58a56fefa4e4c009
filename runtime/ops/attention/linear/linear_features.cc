#include "runtime/ops/attention/linear/linear_features.h"

namespace tarn {

Status LinearFeatures::ReadWeights(const PrepareContext& context, uint64_t kv_heads, uint32_t* next, Weights* weights) const {
  const uint64_t projections = a_.projections();
  if (a_.has_projection()) {
    TARN_ASSIGN_OR_RETURN(weights->projection, context.ExpectTensor((*next)++, "projection", {kv_heads, key_dim_, projections}));
  }
  if (a_.map().bias) {
    TARN_ASSIGN_OR_RETURN(weights->bias, context.ExpectTensor((*next)++, "feature_bias", {kv_heads, projections}));
  }
  return Ok();
}

Result<LinearFeatures> LinearFeatures::Read(const PrepareContext& context, const LinearAttributes& attributes, const Heads& heads) {
  LinearFeatures features;
  features.a_ = attributes;
  features.key_dim_ = heads.key_dim();
  features.size_ = static_cast<size_t>(attributes.Features(heads.key_dim()));
  const uint64_t kv_heads = heads.kv_heads();
  uint32_t next = 0;
  TARN_RETURN_IF_ERROR(features.ReadWeights(context, kv_heads, &next, &features.of_keys_));
  features.of_queries_ = features.of_keys_;
  if (attributes.own_q_map) TARN_RETURN_IF_ERROR(features.ReadWeights(context, kv_heads, &next, &features.of_queries_));
  if (attributes.key_norm_sigma) {
    TARN_ASSIGN_OR_RETURN(features.sigma_, context.ExpectTensor(next++, "sigma", {kv_heads, heads.key_dim()}));
  }
  return features;
}

void LinearFeatures::Normalize(const Kernels& kernels, size_t rows, const float* x, size_t x_stride, float scale, float eps,
                               float* y) const {
  if (a_.qk_norm == VectorNorm::kNone) {
    for (size_t row = 0; row < rows; ++row) kernels.scale_f32(key_dim_, x + row * x_stride, scale, y + row * key_dim_);
    return;
  }
  // The norm comes first: T2R maps scale * q / |q| (golden files, MATH 1.7).
  kernels.l2_normalize(rows, key_dim_, x, x_stride, scale, eps, a_.qk_norm == VectorNorm::kL2Inside, y);
}

void LinearFeatures::Map(const Kernels& kernels, size_t kv_head, size_t queries, size_t keys, const float* x, float* phi,
                         float* log_weight) const {
  if (!a_.own_q_map) return MapRows(kernels, of_keys_, kv_head, queries + keys, x, phi, log_weight);
  MapRows(kernels, of_queries_, kv_head, queries, x, phi, log_weight);
  MapRows(kernels, of_keys_, kv_head, keys, x + queries * key_dim_, phi + queries * size_, log_weight + queries);
}

void LinearFeatures::MapRows(const Kernels& kernels, const Weights& weights, size_t kv_head, size_t rows, const float* x,
                             float* phi, float* log_weight) const {
  if (rows == 0) return;
  const size_t d = key_dim_, count = a_.projections();
  kernels.features[static_cast<size_t>(a_.feature_map)](
      {rows, d, count, x, weights.projection == nullptr ? nullptr : weights.projection + kv_head * d * count,
       weights.bias == nullptr ? nullptr : weights.bias + kv_head * count, a_.ratio, a_.feature_eps, a_.nu, a_.negate_second, phi,
       log_weight});
  if (a_.sum_norm) kernels.sum_normalize(rows, size_, a_.sum_norm_eps, phi);
}

void LinearFeatures::WeighKeys(const Kernels& kernels, size_t kv_head, size_t rows, const float* x, float* log_weight) const {
  if (!a_.key_norm_weight) return;
  kernels.half_squared_norm(rows, key_dim_, x, sigma_ == nullptr ? nullptr : sigma_ + kv_head * key_dim_, log_weight);
}

}  // namespace tarn
