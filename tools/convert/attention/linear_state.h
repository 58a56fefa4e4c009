// The LinearState op, and the attributes that its systems share.
#ifndef TARN_TOOLS_CONVERT_ATTENTION_LINEAR_STATE_H_
#define TARN_TOOLS_CONVERT_ATTENTION_LINEAR_STATE_H_

#include <string>
#include <vector>

#include "tools/convert/attention/attention.h"
#include "variants/linear.h"

namespace tarn::convert {

// Half precision rounds by up to this part of a number: a decay nearer to 1 does not move it.
constexpr float kHalfRounding = 1.0f / 2048;

// Least logarithm of a decay of RWKV-7: -e^(-1/2).
constexpr float kLeastLogDecay = -0.6065306597126334f;

// The op of the context's form, LinearState or NoncausalLinear, without its tensors: attributes, the logits of gate and beta, the
// states. `system`: its name for people.
AttentionOp MakeLinearState(const LinearAttributes& state, const AttentionContext& context, const std::string& system);

// Learned or drawn matrices [Hkv, num_features, d] of the checkpoint, one behind the other, as the op's projection [Hkv, d, D];
// with `sigma`, their columns times sigma [Hkv, d] first.
AttentionTensor Projection(const format::Heads& heads, uint32_t num_features, const std::vector<std::string>& matrices, Init init,
                           bool sigma);
// The weights of a learned feature map of k, or of q where it has its own (`prefix`: "" or "q_"): feature_weight [Hkv, D, d] and,
// where the map has one, feature_bias [Hkv, D]; of a product also factor_weight and factor_bias, and each has half of the D rows.
void AddFeatureWeights(const LinearAttributes& state, const format::Heads& heads, const std::string& prefix, Init init,
                       std::vector<AttentionTensor>* tensors);

// The rates of a softplus gate, the exponentials of A_log [Hkv] of the checkpoint.
AttentionTensor DecayRates(const format::Heads& heads);

// Common attributes. Errors, each with its field: a value out of range. ParseDenominator: behind what weighs the keys.
void ParseDenominator(Fields* fields, DenMode mode, float eps, LinearAttributes* state);
void ParseQkNorm(Fields* fields, bool normalize, VectorNorm kind, float eps, LinearAttributes* state);
void ParseNu(Fields* fields, const format::Heads& heads, LinearAttributes* state);
// gate_normalizer, and gate_clamp_min: of the logarithm of a decay, null or a number up to 0.
void ParseVectorGate(Fields* fields, LinearAttributes* state);
// step_min and step_max, null for no bound. Errors: a maximum that is not above 0, or below the minimum.
void ParseSteps(Fields* fields, LinearAttributes* state);
// What the logits of a gate are projected by: gate_bias, and for a gate of features gate_low_rank, gate_rank and gate_hidden_act.
// Behind MakeLinearState.
void ParseGateProjection(Fields* fields, AttentionOp* op);
// Rule "replace": how removal keys are normalised; behind MakeLinearState the projection of its strengths, whether these blend the
// keys (`blend`: the default), and the factors of removal keys.
void ParseRemovalNorm(Fields* fields, LinearAttributes* state);
void ParseReplace(Fields* fields, bool blend, const AttentionContext& context, AttentionOp* op);
// beta_bias: of the projection of write strengths. Behind MakeLinearState.
void ParseBetaProjection(Fields* fields, AttentionOp* op);
// beta = beta_scale * sigmoid(logit). Above 2 a step could overshoot by more than what was there.
float ParseBetaScale(Fields* fields);

// Attributes that a system has no choice about, and that may be stated all the same.
void FixFeatures(Fields* fields, const char* feature_map, uint32_t num_features);
void FixUndivided(Fields* fields);

}  // namespace tarn::convert

#endif  // TARN_TOOLS_CONVERT_ATTENTION_LINEAR_STATE_H_
