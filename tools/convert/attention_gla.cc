// Gated linear attention: linear state of the keys themselves, whose rows decay by a gate each.
#include <limits>

#include "tools/convert/linear_state.h"

namespace tarn::convert {
namespace {

// Of the logarithm of a decay: null, or a number up to 0.
float ParseClampMin(Fields* fields) {
  const Json* value = fields->Find("gate_clamp_min");
  if (value == nullptr || value->is_null()) return -std::numeric_limits<float>::infinity();
  const float least = fields->Number("gate_clamp_min");
  if (least > 0) fields->FailAt("gate_clamp_min", ValueText(*value) + " is above 0: rows would grow");
  return least;
}

}  // namespace

AttentionOp ParseGla(Fields* fields, const AttentionContext& context) {
  FixFeatures(fields, "identity", context.heads.head_dim());
  fields->Fix("normalize_qk", false);
  fields->Fix("gate", "vector");
  FixUndivided(fields);
  LinearState state;
  state.gate = format::Gate::Vector;
  state.gate_normalizer = fields->PositiveNumber("gate_normalizer", 16.0f);
  state.gate_min = ParseClampMin(fields);
  state.scale = fields->Number("scale", DefaultScale(context.heads));
  return MakeLinearState(state, context.heads, "gla");
}

}  // namespace tarn::convert
