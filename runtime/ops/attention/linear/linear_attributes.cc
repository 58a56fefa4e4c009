#include "runtime/ops/attention/linear/linear_attributes.h"

#include <cmath>

namespace tarn {
namespace {

// The schema's numbers are the kernels'.
static_assert(static_cast<int>(format::FeatureMap::Gaussian) == static_cast<int>(FeatureMap::kGaussian));
static_assert(static_cast<int>(format::FeatureMap::Arccos) == static_cast<int>(FeatureMap::kArccos));
static_assert(static_cast<int>(format::FeatureMap::EluPlusOne) == static_cast<int>(FeatureMap::kEluPlusOne));
static_assert(static_cast<int>(format::FeatureMap::Positive) == static_cast<int>(FeatureMap::kPositive));
static_assert(static_cast<int>(format::FeatureMap::Relu) == static_cast<int>(FeatureMap::kRelu));
static_assert(static_cast<int>(format::FeatureMap::Dpfp) == static_cast<int>(FeatureMap::kDpfp));
static_assert(static_cast<int>(format::FeatureMap::MlpRelu) == static_cast<int>(FeatureMap::kMlpRelu));
static_assert(static_cast<int>(format::FeatureMap::Identity) == static_cast<int>(FeatureMap::kIdentity));
static_assert(static_cast<size_t>(format::FeatureMap::MAX) + 1 == kFeatureMapCount);
static_assert(static_cast<int>(format::DenMode::None) == static_cast<int>(DenMode::kNone));
static_assert(static_cast<int>(format::DenMode::Add) == static_cast<int>(DenMode::kAdd));
static_assert(static_cast<int>(format::DenMode::ClampMin) == static_cast<int>(DenMode::kClampMin));
static_assert(static_cast<int>(format::DenMode::AbsClampMin) == static_cast<int>(DenMode::kAbsClampMin));

enum class Range { kPositive, kNotNegative, kFinite };

Status CheckNumber(const char* name, float value, Range range) {
  const bool fits = std::isfinite(value) && (range == Range::kFinite || value > 0 || (range == Range::kNotNegative && value == 0));
  if (fits) return Ok();
  const char* wanted = range == Range::kFinite ? "a finite number" : range == Range::kPositive ? "> 0" : ">= 0";
  return Error(TARN_BAD_FORMAT, "%s is %g, %s wanted", name, static_cast<double>(value), wanted);
}

Status CheckEnums(const format::LinearState& table) {
  if (table.feature_map() <= format::FeatureMap::MAX && table.gate() <= format::Gate::MAX &&
      table.den_mode() <= format::DenMode::MAX && table.qk_norm() <= format::VectorNorm::MAX &&
      table.rule() <= format::WriteRule::MAX) {
    return Ok();
  }
  return Error(TARN_BAD_FORMAT, "unknown feature_map %u, gate %u, den_mode %u, qk_norm %u or rule %u",
               static_cast<unsigned>(table.feature_map()), static_cast<unsigned>(table.gate()),
               static_cast<unsigned>(table.den_mode()), static_cast<unsigned>(table.qk_norm()),
               static_cast<unsigned>(table.rule()));
}

Status CheckNumbers(const format::LinearState& table) {
  TARN_RETURN_IF_ERROR(CheckNumber("input_scale", table.input_scale(), Range::kPositive));
  TARN_RETURN_IF_ERROR(CheckNumber("q_input_scale", table.q_input_scale(), Range::kPositive));
  TARN_RETURN_IF_ERROR(CheckNumber("input_scale * q_input_scale", table.input_scale() * table.q_input_scale(), Range::kPositive));
  TARN_RETURN_IF_ERROR(CheckNumber("qk_norm_eps", table.qk_norm_eps(), Range::kNotNegative));
  TARN_RETURN_IF_ERROR(CheckNumber("den_eps", table.den_eps(), Range::kNotNegative));
  TARN_RETURN_IF_ERROR(CheckNumber("scale", table.scale(), Range::kFinite));
  TARN_RETURN_IF_ERROR(CheckNumber("ratio", table.ratio(), Range::kFinite));
  TARN_RETURN_IF_ERROR(CheckNumber("feature_eps", table.feature_eps(), Range::kFinite));
  TARN_RETURN_IF_ERROR(CheckNumber("sum_norm_eps", table.sum_norm_eps(), Range::kNotNegative));
  TARN_RETURN_IF_ERROR(CheckNumber("gate_normalizer", table.gate_normalizer(), Range::kPositive));
  TARN_RETURN_IF_ERROR(CheckNumber("beta_scale", table.beta_scale(), Range::kFinite));
  if (std::isnan(table.gate_min())) return Error(TARN_BAD_FORMAT, "gate_min is not a number");
  return Ok();
}

// Members that cannot stand together.
Status CheckCombination(const LinearAttributes& a) {
  if (a.is_delta() && (a.gate != format::Gate::None || a.has_running_max() || a.has_denominator())) {
    return Error(TARN_BAD_FORMAT, "the delta rule has no gate, no running maximum and no den_mode");
  }
  if (a.attention_normalized && !a.is_delta()) return Error(TARN_BAD_FORMAT, "attention_normalized is for the delta rule");
  if (a.has_running_max() && a.gate != format::Gate::None) return Error(TARN_BAD_FORMAT, "a running maximum and a gate");
  if (a.feature_map == FeatureMap::kPositive && a.key_norm_weight) {
    return Error(TARN_BAD_FORMAT, "key_norm_weight: positive features have the key's weight already");
  }
  if (a.key_norm_sigma && !a.key_norm_weight) return Error(TARN_BAD_FORMAT, "key_norm_sigma without key_norm_weight");
  return Ok();
}

}  // namespace

bool LinearAttributes::has_projection() const { return projections > 0; }

size_t LinearAttributes::Features(size_t head_dim) const {
  switch (feature_map) {
    case FeatureMap::kGaussian:
      return 2 * projections;
    case FeatureMap::kArccos:
    case FeatureMap::kPositive:
    case FeatureMap::kMlpRelu:
      return projections;
    case FeatureMap::kRelu:
      return has_projection() ? projections : head_dim;
    case FeatureMap::kDpfp:
      return 2 * head_dim * nu;
    case FeatureMap::kEluPlusOne:
    case FeatureMap::kIdentity:
      return head_dim;
  }
  return 0;
}

Result<LinearAttributes> LinearAttributes::Read(const format::LinearState& table) {
  TARN_RETURN_IF_ERROR(CheckEnums(table));
  TARN_RETURN_IF_ERROR(CheckNumbers(table));
  LinearAttributes a{};
  a.feature_map = static_cast<FeatureMap>(table.feature_map());
  a.ratio = table.ratio();
  a.feature_eps = table.feature_eps();
  a.nu = table.nu();
  a.negate_second = table.negate_second();
  a.k_scale = table.input_scale();
  a.q_scale = table.input_scale() * table.q_input_scale();
  a.qk_norm = table.qk_norm();
  a.qk_norm_eps = table.qk_norm_eps();
  a.sum_norm = table.sum_norm();
  a.sum_norm_eps = table.sum_norm_eps();
  a.key_norm_weight = table.key_norm_weight();
  a.key_norm_sigma = table.key_norm_sigma();
  a.gate = table.gate();
  a.gate_normalizer = table.gate_normalizer();
  a.gate_min = table.gate_min();
  a.rule = table.rule();
  a.beta_scale = table.beta_scale();
  a.attention_normalized = table.attention_normalized();
  a.den_mode = static_cast<DenMode>(table.den_mode());
  a.den_eps = table.den_eps();
  a.scale = table.scale();

  const bool needs_projection = a.feature_map == FeatureMap::kGaussian || a.feature_map == FeatureMap::kArccos ||
                                a.feature_map == FeatureMap::kPositive || a.feature_map == FeatureMap::kMlpRelu ||
                                (a.feature_map == FeatureMap::kRelu && table.projection());
  constexpr uint32_t kMostFeatures = 1u << 20;
  if (needs_projection && (table.num_features() < 1 || table.num_features() > kMostFeatures)) {
    return Error(TARN_BAD_FORMAT, "num_features is %u, 1 to %u wanted", table.num_features(), kMostFeatures);
  }
  a.projections = needs_projection ? table.num_features() : 0;
  constexpr uint32_t kMostNu = 64;
  if (a.feature_map == FeatureMap::kDpfp && (a.nu < 1 || a.nu > kMostNu)) {
    return Error(TARN_BAD_FORMAT, "nu is %u, 1 to %u wanted", a.nu, kMostNu);
  }
  TARN_RETURN_IF_ERROR(CheckCombination(a));
  return a;
}

void DescribeLinear(const format::LinearState& a, char* text, size_t text_bytes) {
  Format(text, text_bytes, "%s: %s features %u, gate %s, den %s %g, rule %s, heads %u/%u x %u/%u",
         a.system() == nullptr ? "unnamed" : a.system()->c_str(), format::EnumNameFeatureMap(a.feature_map()), a.num_features(),
         format::EnumNameGate(a.gate()), format::EnumNameDenMode(a.den_mode()), static_cast<double>(a.den_eps()),
         format::EnumNameWriteRule(a.rule()), a.heads()->heads(), a.heads()->kv_heads(), a.heads()->head_dim(),
         a.heads()->value_dim());
}

}  // namespace tarn
