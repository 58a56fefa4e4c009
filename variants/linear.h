// Linear states (MATH F1): S <- A S + phi(k) x u, o = scale * phi(q)^T S / den. Their attributes, and what follows from these:
// inputs, constants, states, forms. Feature maps are in feature_maps.h; gates A and write rules u are lists here.
#ifndef TARN_VARIANTS_LINEAR_H_
#define TARN_VARIANTS_LINEAR_H_

#include "variants/attribute.h"
#include "variants/feature_maps.h"
#include "variants/state.h"

namespace tarn {

// The numbers of all lists below are those of model files: new entries go at the end.

// How q and k are normalised before the feature map.
#define TARN_VECTOR_NORMS(X)                    \
  X(None, "none")                               \
  X(L2Outside, "outside") /* x / (|x| + eps) */ \
  X(L2Inside, "inside")   /* x / sqrt(|x|^2 + eps) */

// The denominator, from s = phi(q) . z
#define TARN_DEN_MODES(X)                                     \
  X(None, "none")                 /* no division, and no z */ \
  X(Add, "add")                   /* s + eps */               \
  X(ClampMin, "clamp_min")        /* max(s, eps) */           \
  X(AbsClampMin, "abs_clamp_min") /* max(|s|, eps) */

// Where a gate or a write rule takes its numbers from: logits are an input of the op, of one number per key/value head or per
// feature.
enum class Logits : uint8_t { kNone, kPerHead, kPerFeature };

struct GateInfo {
  const char* name;
  Logits logits;
  const char* tensor;  // a constant [Hkv] that it reads, or nullptr
  bool chunks;         // MATH 0.2 has a chunked form; else a chunk is a loop of steps
  bool writes;         // it says what is written, too
};

// Gates forget; without an order of the tokens there is none. The equations of both lists are for readers: no program has them.
#define TARN_GATES(X)                                                                                                              \
  X(None, "none", Logits::kNone, nullptr, true, false, "S <- S + phi(k) x v")                                                      \
  X(Forget, "forget", Logits::kPerHead, nullptr, true, true, "S <- g S + (1 - g) phi(k) x v, g = sigmoid (RFA, eq. 7)")            \
  X(Vector, "vector", Logits::kPerFeature, nullptr, false, false,                                                                  \
    "S <- diag(g) S + phi(k) x v, log g = max(logsigmoid / gate_normalizer, gate_min) (GLA)")                                      \
  X(Constant, "constant", Logits::kNone, "decay", true, false, "S <- decay S + phi(k) x v (RetNet)")                               \
  X(Softplus, "softplus", Logits::kPerHead, "rate", true, false, "S <- g S + phi(k) x v, log g = -rate softplus (Gated DeltaNet)") \
  X(SoftplusVector, "softplus_vector", Logits::kPerFeature, "rate", false, false,                                                  \
    "S <- diag(g) S + phi(k) x v, log g = -rate softplus (KDA)")                                                                   \
  X(Tied, "tied", Logits::kNone, nullptr, false, true, "S <- diag(g) S + (1 - g) x v, g = bound + (1 - bound) sigmoid(k) (HGRN2)") \
  X(Step, "step", Logits::kPerHead, "rate", true, true, "S <- g S + t phi(k) x v, t = softplus, log g = -rate t (Mamba 2)")        \
  X(SigmoidVector, "sigmoid_vector", Logits::kPerFeature, nullptr, false, false,                                                   \
    "S <- diag(g) S + phi(k) x v, log g = gate_min sigmoid (RWKV-7)")

struct WriteRuleInfo {
  const char* name;
  Logits logits;
  bool noncausal;  // tokens may be written in any order
};

#define TARN_WRITE_RULES(X)                                                                            \
  X(Sum, "sum", Logits::kNone, true, "S + phi(k) x v")                                                 \
  X(Delta, "delta", Logits::kPerHead, false,                                                           \
    "S + beta phi(k) x (v - S^T phi(k)), S as it has decayed, beta = beta_scale * sigmoid (MATH 1.6)") \
  X(Replace, "replace", Logits::kPerFeature, false,                                                    \
    "S - (a o r) x (S^T r) + phi(k) x v, S^T r before it decays, a = sigmoid, r the removal key (RWKV-7; MATH 1.6)")

#define TARN_ENUMERATOR(id, ...) k##id,
enum class Gate : uint8_t { TARN_GATES(TARN_ENUMERATOR) };
enum class WriteRule : uint8_t { TARN_WRITE_RULES(TARN_ENUMERATOR) };
#undef TARN_ENUMERATOR

#define TARN_ENUMERATOR(id, name) k##id,
#define TARN_NAME(id, name) name,
enum class VectorNorm : uint8_t { TARN_VECTOR_NORMS(TARN_ENUMERATOR) };
enum class DenMode : uint8_t { TARN_DEN_MODES(TARN_ENUMERATOR) };
inline constexpr const char* kVectorNormNames[] = {TARN_VECTOR_NORMS(TARN_NAME)};
inline constexpr const char* kDenModeNames[] = {TARN_DEN_MODES(TARN_NAME)};
#undef TARN_ENUMERATOR
#undef TARN_NAME

#define TARN_INFO(id, name, logits, tensor, chunks, writes, equation) {name, logits, tensor, chunks, writes},
inline constexpr GateInfo kGates[] = {TARN_GATES(TARN_INFO)};
#undef TARN_INFO
#define TARN_INFO(id, name, logits, noncausal, equation) {name, logits, noncausal},
inline constexpr WriteRuleInfo kWriteRules[] = {TARN_WRITE_RULES(TARN_INFO)};
#undef TARN_INFO

constexpr const GateInfo& InfoOf(Gate gate) { return kGates[static_cast<size_t>(gate)]; }
constexpr const WriteRuleInfo& InfoOf(WriteRule rule) { return kWriteRules[static_cast<size_t>(rule)]; }

// Every attribute, by its name in table LinearState of schema/tarn.fbs. CHOICE(type, name, entries of its list, default),
// SIZE(name, default), NUMBER(name, default, bounds), FLAG(name)
#define TARN_LINEAR_ATTRIBUTES(CHOICE, SIZE, NUMBER, FLAG)                                                           \
  CHOICE(FeatureMap, feature_map, kFeatureMaps, kIdentity)                                                           \
  SIZE(num_features, 0)                       /* D; maps without W have none */                                      \
  FLAG(projection)                            /* maps whose W is optional: there is one */                           \
  NUMBER(input_scale, 1, Bounds::kPositive)   /* of q and k, before norm and feature map */                          \
  NUMBER(q_input_scale, 1, Bounds::kPositive) /* of q alone */                                                       \
  CHOICE(VectorNorm, qk_norm, kVectorNormNames, kNone)                                                               \
  NUMBER(qk_norm_eps, 0, Bounds::kNotNegative)                                                                       \
  NUMBER(ratio, 1, Bounds::kFinite)                                                                                  \
  NUMBER(feature_eps, 0, Bounds::kFinite)                                                                            \
  SIZE(nu, 0)                                                                                                        \
  FLAG(negate_second) /* DPFP, as fla has it: r = [relu(x); -relu(x)] */                                             \
  FLAG(sum_norm)      /* features are divided by (their sum + sum_norm_eps) */                                       \
  NUMBER(sum_norm_eps, 0, Bounds::kNotNegative)                                                                      \
  FLAG(key_norm_weight) /* keys weigh exp(|sigma * x|^2 / 2), x after input_scale */                                 \
  FLAG(key_norm_sigma)  /* sigma [Hkv, d] is a constant; else 1 */                                                   \
  CHOICE(Gate, gate, kGates, kNone)                                                                                  \
  NUMBER(gate_normalizer, 1, Bounds::kPositive)                                                                      \
  NUMBER(gate_min, -kInfinity, Bounds::kNotNan) /* least log decay */                                                \
  CHOICE(WriteRule, rule, kWriteRules, kSum)                                                                         \
  NUMBER(beta_scale, 1, Bounds::kFinite)                                                                             \
  FLAG(attention_normalized) /* delta rule: retrieval divided by phi(k) . z, with den_eps */                         \
  CHOICE(DenMode, den_mode, kDenModeNames, kNone)                                                                    \
  NUMBER(den_eps, 0, Bounds::kNotNegative)                                                                           \
  NUMBER(scale, 1, Bounds::kFinite)                         /* of the output */                                      \
  SIZE(key_heads, 0)                                        /* of q and k, each for a group of heads; 0: as those */ \
  FLAG(gate_bounds)                                         /* gate "tied": bound [Hkv, M] is a constant; else 0 */  \
  NUMBER(step_min, 0, Bounds::kNotNegative)                 /* gate "step": least step */                            \
  NUMBER(step_max, kInfinity, Bounds::kNotNan)              /* gate "step": largest step */                          \
  CHOICE(VectorNorm, removal_norm, kVectorNormNames, kNone) /* of removal keys */                                    \
  NUMBER(removal_norm_eps, 0, Bounds::kNotNegative)                                                                  \
  FLAG(own_q_map)                         /* q has W and bias of its own */                                          \
  NUMBER(q_norm_eps, -1, Bounds::kFinite) /* of q alone; below 0: qk_norm_eps */

struct LinearAttributes {
#define TARN_CHOICE(type, name, list, fallback) type name = type::fallback;
#define TARN_SIZE(name, fallback) uint32_t name = fallback;
#define TARN_NUMBER(name, fallback, bounds) float name = fallback;
#define TARN_FLAG(name) bool name = false;
  TARN_LINEAR_ATTRIBUTES(TARN_CHOICE, TARN_SIZE, TARN_NUMBER, TARN_FLAG)
#undef TARN_CHOICE
#undef TARN_SIZE
#undef TARN_NUMBER
#undef TARN_FLAG

  constexpr const FeatureMapInfo& map() const { return InfoOf(feature_map); }
  constexpr bool has_projection() const {
    return map().projection == Projection::kRequired || (map().projection == Projection::kOptional && projection);
  }
  constexpr uint32_t projections() const { return has_projection() ? num_features : 0; }                          // D
  constexpr uint64_t Features(uint64_t head_dim) const { return map().features({head_dim, projections(), nu}); }  // M
  constexpr float k_scale() const { return input_scale; }
  constexpr float q_scale() const { return input_scale * q_input_scale; }

  constexpr float k_eps() const { return qk_norm_eps; }
  constexpr float q_eps() const { return q_norm_eps < 0 ? qk_norm_eps : q_norm_eps; }

  constexpr bool is_delta() const { return rule == WriteRule::kDelta; }
  constexpr bool is_replace() const { return rule == WriteRule::kReplace; }
  constexpr bool has_gate() const { return gate != Gate::kNone; }
  // Its decays are exp(-rate * softplus(logit)).
  constexpr bool has_rates() const { return gate == Gate::kSoftplus || gate == Gate::kSoftplusVector || gate == Gate::kStep; }
  // Every feature has a decay of its own.
  constexpr bool decays_by_row() const { return InfoOf(gate).logits == Logits::kPerFeature || gate == Gate::kTied; }
  constexpr bool has_gate_logits() const { return InfoOf(gate).logits != Logits::kNone; }
  constexpr bool has_beta_logits() const { return InfoOf(rule).logits != Logits::kNone; }
  // Columns of an input of logits, of all key/value heads.
  static constexpr uint64_t LogitWidth(Logits logits, uint64_t kv_heads, uint64_t features) {
    return logits == Logits::kNone ? 0 : logits == Logits::kPerHead ? kv_heads : kv_heads * features;
  }

  constexpr bool has_denominator() const { return den_mode != DenMode::kNone; }
  // z: what the denominator, or the retrieval of the attention-normalised delta rule, is made of.
  constexpr bool has_norm() const { return has_denominator() || attention_normalized; }
  // Keys have log weights, so that S and z are kept relative to a running maximum.
  constexpr bool has_running_max() const { return map().log_weights || key_norm_weight; }

  constexpr bool has_chunk_form() const { return InfoOf(gate).chunks && !attention_normalized && !is_replace(); }
  constexpr bool has_noncausal_form() const { return !has_gate() && key_heads == 0 && InfoOf(rule).noncausal; }

  // Why the attributes cannot stand together; nullptr: they can.
  constexpr const char* Conflict() const {
    if (rule != WriteRule::kSum && (InfoOf(gate).writes || has_running_max() || has_denominator())) {
      return "rules delta and replace have no gate that says what is written, no running maximum and no den_mode";
    }
    if (attention_normalized && has_gate()) return "attention_normalized has no gate";
    if (attention_normalized && !is_delta()) return "attention_normalized is for the delta rule";
    // A running maximum cancels in a quotient alone.
    if (has_running_max() && (has_gate() || !has_denominator())) return "a running maximum wants a den_mode, no gate";
    if (own_q_map && !has_projection()) return "own_q_map is for a feature map with a projection";
    if (feature_map == FeatureMap::kProduct && num_features % 2 != 0) return "feature_map product wants an even num_features";
    if (map().log_weights && (key_norm_weight || sum_norm)) return "key_norm_weight or sum_norm: the features have weights";
    if (key_norm_sigma && !key_norm_weight) return "key_norm_sigma without key_norm_weight";
    if (gate == Gate::kTied && (feature_map != FeatureMap::kIdentity || sum_norm || qk_norm != VectorNorm::kNone)) {
      return "gate tied makes the keys: feature_map identity, no sum_norm and no qk_norm expected";
    }
    if (gate_bounds && gate != Gate::kTied) return "gate_bounds is for gate tied";
    if (gate == Gate::kSigmoidVector && !(gate_min < 0 && gate_min > -kInfinity)) {
      return "gate sigmoid_vector wants a finite gate_min below 0";
    }
    if (!(step_max > 0 && step_max >= step_min)) return "step_max is not above 0 and at least step_min";
    return nullptr;
  }
};

inline constexpr FloatAttribute<LinearAttributes> kLinearNumbers[] = {
#define TARN_IGNORE(...)
#define TARN_NUMBER(name, fallback, bounds) {#name, &LinearAttributes::name, bounds},
    TARN_LINEAR_ATTRIBUTES(TARN_IGNORE, TARN_IGNORE, TARN_NUMBER, TARN_IGNORE)
#undef TARN_NUMBER
#undef TARN_IGNORE
};

// The states of the causal form, in their order.
constexpr uint32_t kMaxLinearStates = 3;
constexpr uint32_t StateCount(const LinearAttributes& a) { return 1u + a.has_norm() + a.has_running_max(); }
// Fills the first StateCount(a) of them, of d and dv elements per key and value.
constexpr void StatesOf(const LinearAttributes& a, uint64_t kv_heads, uint64_t d, uint64_t dv,
                        StateInfo (&states)[kMaxLinearStates]) {
  const uint64_t features = a.Features(d);
  uint32_t next = 0;
  states[next++] = {"S", 3, {kv_heads, features, dv}, StoredAs::kF32OrF16};
  if (a.has_norm()) states[next++] = {"z", 2, {kv_heads, features}, StoredAs::kF32};
  if (a.has_running_max()) states[next++] = {"m", 1, {kv_heads}, StoredAs::kF32};
}

}  // namespace tarn

#endif  // TARN_VARIANTS_LINEAR_H_
