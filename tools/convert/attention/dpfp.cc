// Deterministic parameter-free projection: linear state whose features are products of the rectified halves of a row.
#include <string>

#include "tools/convert/attention/linear_state.h"

namespace tarn::convert {
namespace {

// negate_second
constexpr Choice<bool> kVariants[] = {{"paper", false}, {"fla", true}};

}  // namespace

AttentionOp ParseDpfp(Fields* fields, const AttentionContext& context) {
  LinearAttributes state;
  state.feature_map = FeatureMap::kDpfp;
  ParseNu(fields, context.heads, &state);
  FixFeatures(fields, "dpfp", 2 * context.heads.head_dim() * state.nu);
  state.negate_second = fields->OneOf<bool>("dpfp_variant", kVariants, false);
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "none");
  ParseDenominator(fields, DenMode::kAdd, 1e-6f, &state);
  state.scale = fields->Number("scale", 1.0f);
  return MakeLinearState(state, context, "dpfp");
}

}  // namespace tarn::convert
