// The LinearState op, and the attributes that its systems share.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_LINEAR_STATE_H_
#define TARN_TOOLS_CONVERT_ATTENTION_LINEAR_STATE_H_

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tools/convert/attention/attention.h"

namespace tarn::convert {

// Half precision rounds by up to this part of a number: a decay nearer to 1 does not move it.
constexpr float kHalfRounding = 1.0f / 2048;

struct Denominator {
  format::DenMode mode = format::DenMode::None;
  float eps = 0;
};

struct QkNorm {
  format::VectorNorm kind = format::VectorNorm::None;
  float eps = 0;
};

// The attributes of the op, as schema/tarn.fbs has them; a parser sets those that its system has.
struct LinearState {
  format::FeatureMap feature_map = format::FeatureMap::Identity;
  uint32_t num_features = 0;
  float input_scale = 1;
  float q_input_scale = 1;
  QkNorm qk_norm;
  format::Gate gate = format::Gate::None;
  Denominator den;
  float scale = 1;
  float ratio = 1;
  float feature_eps = 0;
  bool projection = false;
  uint32_t nu = 0;
  bool negate_second = false;
  std::optional<float> sum_norm_eps;
  bool key_norm_weight = false;
  bool key_norm_sigma = false;
  float gate_normalizer = 1;
  float gate_min = -std::numeric_limits<float>::infinity();
  format::WriteRule rule = format::WriteRule::Sum;
  float beta_scale = 1;
  bool attention_normalized = false;
};

// The op of the context's form, LinearState or NoncausalLinear, without its tensors: attributes, the logits of gate and beta, the
// states. `system`: its name for people.
AttentionOp MakeLinearState(const LinearState& state, const AttentionContext& context, const std::string& system);

// A learned or drawn matrix [Hkv, D, d] of the checkpoint, as the op's projection [Hkv, d, D]; with `sigma`, its columns times
// sigma [Hkv, d] first.
AttentionTensor Projection(const format::Heads& heads, uint32_t num_features, const char* matrix, Init init, bool sigma);

// Common attributes. Errors, each with its field: a value out of range.
Denominator ParseDenominator(Fields* fields, format::DenMode mode, float eps);
QkNorm ParseQkNorm(Fields* fields, bool normalize, format::VectorNorm kind, float eps);
uint32_t ParseNu(Fields* fields, const format::Heads& heads);

// Attributes that a system has no choice about, and that may be stated all the same.
void FixFeatures(Fields* fields, const char* feature_map, uint32_t num_features);
void FixUndivided(Fields* fields);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_LINEAR_STATE_H_
