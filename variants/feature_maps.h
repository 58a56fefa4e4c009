// Feature maps phi of linear states (MATH F1): a line each. The numbers that model files store are the places in this list, so new
// ones go at the end.
//
// To add one: a line here, kernels/features/<name>.cc with the scalar reference and the SIMD version, and a golden file. Everything
// else is made from the line: enums, kernel tables, what the runtime and the converter check, states, tests.
#ifndef TARN_VARIANTS_FEATURE_MAPS_H_
#define TARN_VARIANTS_FEATURE_MAPS_H_

#include <cstddef>
#include <cstdint>

namespace tarn {

// Of a row x of d elements.
struct FeatureSizes {
  uint64_t head_dim;     // d
  uint64_t projections;  // D, rows of W; 0 without W
  uint64_t nu;           // DPFP
};

// M
constexpr uint64_t OnePerProjection(const FeatureSizes& s) { return s.projections; }
constexpr uint64_t OnePerTwoProjections(const FeatureSizes& s) { return s.projections / 2; }
constexpr uint64_t TwoPerProjection(const FeatureSizes& s) { return 2 * s.projections; }
constexpr uint64_t OnePerElement(const FeatureSizes& s) { return s.head_dim; }
constexpr uint64_t OnePerRow(const FeatureSizes& s) { return s.projections > 0 ? s.projections : s.head_dim; }
constexpr uint64_t TwoNuPerElement(const FeatureSizes& s) { return 2 * s.head_dim * s.nu; }

enum class Projection : uint8_t { kNone, kOptional, kRequired };

// Attributes of LinearAttributes that only some maps read, as bits.
enum FeatureAttributes : uint32_t {
  kNoAttributes = 0,
  kReadsRatio = 1,
  kReadsFeatureEps = 2,
  kReadsNu = 4,
  kReadsNegateSecond = 8,
};

struct FeatureMapInfo {
  const char* name;
  Projection projection;  // W [Hkv, d, D]
  bool bias;              // feature_bias [Hkv, D]
  bool log_weights;       // phi is relative to a weight exp(l) of each row, so that keys need a running maximum m [Hkv]
  uint64_t (*features)(const FeatureSizes&);
  uint32_t attributes;  // FeatureAttributes
};

// The equations are for readers: no program has them.
#define TARN_FEATURE_MAPS(X)                                                                                                     \
  X(Gaussian, "gaussian", Projection::kRequired, false, false, TwoPerProjection, kNoAttributes,                                  \
    "sqrt(1/D) [sin Wx; cos Wx] (RFA, Theorem 1)")                                                                               \
  X(Arccos, "arccos", Projection::kRequired, false, false, OnePerProjection, kNoAttributes,                                      \
    "sqrt(1/D) relu(Wx) (RFA, arc-cosine kernel of order 1)")                                                                    \
  X(EluPlusOne, "elu_plus_one", Projection::kNone, false, false, OnePerElement, kNoAttributes,                                   \
    "x > 0 ? x + 1 : exp(x) (linear transformer; MATH 1.3)")                                                                     \
  X(Positive, "positive", Projection::kRequired, false, true, OnePerProjection, kReadsFeatureEps,                                \
    "sqrt(1/D) exp(Wx - |x|^2/2 - l), l the largest exponent of the row (Performer, FAVOR+; MATH 1.4)")                          \
  X(Relu, "relu", Projection::kOptional, false, false, OnePerRow, kReadsRatio | kReadsFeatureEps,                                \
    "relu(ratio * Wx) + eps, without W of x (Performer-ReLU; MATH 1.4)")                                                         \
  X(Dpfp, "dpfp", Projection::kNone, false, false, TwoNuPerElement, kReadsNu | kReadsNegateSecond,                               \
    "r_i * r_{(i+j) mod 2d} at i + 2d(j-1), j = 1..nu, r = [relu(x); relu(-x)] (DPFP; MATH 1.5)")                                \
  X(MlpRelu, "mlp_relu", Projection::kRequired, true, false, OnePerProjection, kNoAttributes, "relu(Wx + bias) (T2R; MATH 1.7)") \
  X(Identity, "identity", Projection::kNone, false, false, OnePerElement, kNoAttributes, "x (GLA, RetNet, DeltaNet)")            \
  X(Product, "product", Projection::kRequired, true, false, OnePerTwoProjections, kNoAttributes,                                 \
    "(Wx + bias)_i (Wx + bias)_{i+M}, M = D/2 (fla's elementwise product; MATH 1.7)")                                            \
  X(Hedgehog, "hedgehog", Projection::kRequired, true, false, TwoPerProjection, kNoAttributes,                                   \
    "softmax([2y; -2y]), y = Wx + bias (Hedgehog as fla has it; MATH 1.7)")

enum class FeatureMap : uint8_t {
#define TARN_ENUMERATOR(id, ...) k##id,
  TARN_FEATURE_MAPS(TARN_ENUMERATOR)
#undef TARN_ENUMERATOR
};

inline constexpr FeatureMapInfo kFeatureMaps[] = {
#define TARN_INFO(id, name, projection, bias, log_weights, features, attributes, equation) \
  {name, projection, bias, log_weights, features, attributes},
    TARN_FEATURE_MAPS(TARN_INFO)
#undef TARN_INFO
};
constexpr size_t kFeatureMapCount = sizeof(kFeatureMaps) / sizeof(kFeatureMaps[0]);

constexpr const FeatureMapInfo& InfoOf(FeatureMap map) { return kFeatureMaps[static_cast<size_t>(map)]; }

}  // namespace tarn

#endif  // TARN_VARIANTS_FEATURE_MAPS_H_
