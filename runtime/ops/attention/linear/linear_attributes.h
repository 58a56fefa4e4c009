// Attributes of a linear op: read once, checked, in the kernels' terms.
#ifndef TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_ATTRIBUTES_H_
#define TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_ATTRIBUTES_H_

#include "runtime/ops/op.h"

namespace tarn {

struct LinearAttributes {
  // Errors: TARN_BAD_FORMAT, which names the field.
  static Result<LinearAttributes> Read(const format::LinearState& table);

  // M of heads with d elements.
  size_t Features(size_t head_dim) const;
  bool has_projection() const;
  bool has_denominator() const { return den_mode != DenMode::kNone; }
  // z: what the denominator, or the retrieval of the attention-normalised delta rule, is made of.
  bool has_norm() const { return has_denominator() || attention_normalized; }
  // Keys have log weights, so that S and z are kept relative to a running maximum.
  bool has_running_max() const { return feature_map == FeatureMap::kPositive || key_norm_weight; }
  bool has_gate_logits() const { return gate == format::Gate::Forget || gate == format::Gate::Vector; }
  bool is_delta() const { return rule == format::WriteRule::Delta; }
  // MATH 0.2 has a chunked form; else a chunk is a loop of steps.
  bool has_chunk_form() const { return gate != format::Gate::Vector && !attention_normalized; }

  FeatureMap feature_map;
  size_t projections;  // D, 0 without W
  float ratio;
  float feature_eps;
  uint32_t nu;
  bool negate_second;
  float k_scale;
  float q_scale;
  format::VectorNorm qk_norm;
  float qk_norm_eps;
  bool sum_norm;
  float sum_norm_eps;
  bool key_norm_weight;
  bool key_norm_sigma;
  format::Gate gate;
  float gate_normalizer;
  float gate_min;
  format::WriteRule rule;
  float beta_scale;
  bool attention_normalized;
  DenMode den_mode;
  float den_eps;
  float scale;
};

// The attributes in a few words, for people.
void DescribeLinear(const format::LinearState& table, char* text, size_t text_bytes);

}  // namespace tarn

#endif  // TARN_RUNTIME_OPS_ATTENTION_LINEAR_LINEAR_ATTRIBUTES_H_
